//! nginx, by `auth_request`.

use dashpot_testkit::process::of_the_system;

use crate::facts::{self, Denial, OnAllow, RULES, of_every_gateway};
use crate::page::{block, blocks, changed};
use crate::scene::Scene;

const PAGE: &str = include_str!("../../../../docs/gateways/nginx.md");

pub(crate) fn scene(rules: &str) -> Scene {
    run(rules, &block(PAGE, "nginx"))
}

fn run(rules: &str, configuration: &str) -> Scene {
    Scene::start(rules, &of_the_system("nginx"), |place, command| {
        let text = changed(configuration, "listen 8000;", "listen 127.0.0.1:8000;");
        let text = changed(&text, "/run/nginx.pid", &place.path("nginx.pid"));
        // The places for files that were compiled in are root's.
        let mut http = "http {\n    access_log off;\n".to_owned();
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            http += &format!("    {kind}_temp_path {};\n", place.path(kind));
        }
        let file = place.write("nginx.conf", &changed(&text, "http {\n", &http));
        // One process, so that there is nobody else to be killed.
        command.args(["-e", "stderr", "-c", &file, "-g", "daemon off; master_process off;"]);
        command.args(["-p", &place.path("")]);
    })
}

of_every_gateway!(OnAllow::Told, Denial::Gateways, 503);

#[test]
fn a_hung_dashpot_keeps_nobody() {
    facts::a_hung_dashpot_keeps_nobody(&scene(RULES), 503);
}

#[test]
fn without_dashpot_everybody_passes_if_wished() {
    let parts = blocks(PAGE, "nginx");
    let [configuration, line, location] = parts.as_slice() else {
        panic!("the configuration, a line and a location to add: {parts:?}");
    };
    let asking = "proxy_pass http://dashpot/v1/forward-auth?deny=403;\n";
    let text = changed(configuration, asking, &format!("{asking}{line}"));
    let denied = "location @denied {";
    let text = changed(&text, denied, &format!("{location}{denied}"));
    facts::without_dashpot_everybody_passes(run(RULES, &text));
}
