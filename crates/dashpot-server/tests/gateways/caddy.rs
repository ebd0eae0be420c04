//! Caddy, by the long form of `forward_auth`.

use crate::facts::{self, Denial, OnAllow, RULES, of_every_gateway};
use crate::page::{block, blocks, changed};
use crate::scene::Scene;
use crate::tools::installed;

const PAGE: &str = include_str!("../../../../docs/gateways/caddy.md");

pub(crate) fn scene(rules: &str) -> Scene {
    run(rules, &block(PAGE, "caddyfile"))
}

fn run(rules: &str, configuration: &str) -> Scene {
    Scene::start(rules, &installed("caddy"), |place, command| {
        let text = changed(configuration, ":8000 {\n", ":8000 {\n\tbind 127.0.0.1\n");
        let file = place.write("Caddyfile", &text);
        command.args(["run", "--adapter", "caddyfile", "--config", &file]);
        // Whatever else it keeps is kept here, and several run at once.
        for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, place.path(""));
        }
        command.env("CADDY_ADMIN", format!("unix/{}", place.path("admin.sock")));
    })
}

of_every_gateway!(OnAllow::Told, Denial::Ours, 502);

#[test]
fn a_hung_dashpot_keeps_nobody() {
    facts::a_hung_dashpot_keeps_nobody(&scene(RULES), 504);
}

#[test]
fn without_dashpot_everybody_passes_if_wished() {
    let parts = blocks(PAGE, "caddyfile");
    let [configuration, errors] = parts.as_slice() else {
        panic!("the configuration and a block to add: {parts:?}");
    };
    let route = "\troute {\n";
    let text = changed(configuration, route, &format!("{errors}{route}"));
    facts::without_dashpot_everybody_passes(run(RULES, &text));
}
