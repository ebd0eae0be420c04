//! Traefik, by ForwardAuth.

use crate::facts::{Denial, OnAllow, RULES, of_every_gateway};
use crate::page::{blocks, changed};
use crate::scene::Scene;
use crate::tools::installed;

const PAGE: &str = include_str!("../../../../docs/gateways/traefik.md");

pub(crate) fn scene(rules: &str) -> Scene {
    Scene::start(rules, &installed("traefik"), |place, command| {
        let parts = blocks(PAGE, "yaml");
        let [settled, dynamic] = parts.as_slice() else { panic!("two files: {parts:?}") };
        let dynamic = place.write("dynamic.yml", dynamic);
        let text = changed(settled, "\":8000\"", "\"127.0.0.1:8000\"");
        let text = changed(&text, "/etc/traefik/dynamic.yml", &dynamic);
        command.args(["--configFile", &place.write("traefik.yml", &text)]);
    })
}

of_every_gateway!(OnAllow::Silent, Denial::Ours, 500);
