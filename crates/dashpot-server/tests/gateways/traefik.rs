//! Traefik, by ForwardAuth.

use crate::facts::{self, Denial, OnAllow, RULES};
use crate::page::{block, blocks, changed};
use crate::scene::Scene;
use crate::tools::installed;

const PAGE: &str = include_str!("../../../../docs/gateways/traefik.md");

fn scene(rules: &str) -> Scene {
    Scene::start(rules, &installed("traefik"), |place, command| {
        let parts = blocks(PAGE, "yaml");
        let [settled, dynamic] = parts.as_slice() else { panic!("two files: {parts:?}") };
        let dynamic = place.write("dynamic.yml", dynamic);
        let text = changed(settled, "\":8000\"", "\"127.0.0.1:8000\"");
        let text = changed(&text, "/etc/traefik/dynamic.yml", &dynamic);
        command.args(["--configFile", &place.write("traefik.yml", &text)]);
    })
}

#[test]
fn who_is_over_the_limit_waits() {
    let scene = scene(&block(PAGE, "toml"));
    facts::who_is_over_the_limit_waits(&scene, OnAllow::Silent, Denial::Ours);
}

#[test]
fn forging_buys_nothing() {
    facts::forging_buys_nothing(&scene(RULES));
}

#[test]
fn methods_are_told_apart() {
    facts::methods_are_told_apart(&scene(RULES));
}

#[test]
fn targets_arrive_as_they_are() {
    facts::targets_arrive_as_they_are(&scene(RULES));
}

#[test]
fn no_way_of_writing_leads_around() {
    facts::no_way_of_writing_leads_around(&scene(RULES));
}

#[test]
fn answers_stay_whose_they_are() {
    facts::answers_stay_whose_they_are(&scene(RULES));
}

#[test]
fn without_dashpot_nobody_passes() {
    facts::without_dashpot_nobody_passes(scene(RULES), 500);
}
