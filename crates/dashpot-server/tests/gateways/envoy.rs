//! Envoy, by its filter ext_authz over HTTP.

use std::process::Command;

use crate::facts::{self, Denial, OnAllow, RULES, of_every_gateway};
use crate::gateway::Place;
use crate::page::{block, changed};
use crate::scene::Scene;
use crate::tools::installed;

const PAGE: &str = include_str!("../../../../docs/gateways/envoy.md");

pub(crate) fn scene(rules: &str) -> Scene {
    run(rules, &block(PAGE, "yaml"))
}

fn run(rules: &str, configuration: &str) -> Scene {
    Scene::start(rules, &installed("envoy"), with(configuration))
}

/// How to run it with a configuration of the documentation.
pub(crate) fn with(configuration: &str) -> impl Fn(&Place<'_>, &mut Command) {
    let text = changed(configuration, "0.0.0.0", "127.0.0.1");
    move |place, command| {
        let file = place.write("envoy.yaml", &text);
        // Several run at once, and this machine has others to serve.
        command.args(["-c", &file, "--use-dynamic-base-id", "--concurrency", "1"]);
        command.args(["--log-level", "warning"]);
    }
}

of_every_gateway!(OnAllow::Told, Denial::Ours, 503);

#[test]
fn a_hung_dashpot_keeps_nobody() {
    facts::a_hung_dashpot_keeps_nobody(&scene(RULES), 503);
}

#[test]
fn without_dashpot_everybody_passes_if_wished() {
    let configuration = block(PAGE, "yaml");
    let open = changed(&configuration, "failure_mode_allow: false", "failure_mode_allow: true");
    facts::without_dashpot_everybody_passes(run(RULES, &open));
}
