//! What the page tells people to write is run as it stands there; only the port is another.

use crate::node::node;
use crate::page::{blocks, with_ports};
use crate::scene::{Scene, ask, contented, run};
use crate::tools::installed;

const PAGE: &str = include_str!("../../../../docs/resp.md");

/// What the page shows in this language, for this service.
fn snippet(scene: &Scene, language: &str) -> String {
    let found = blocks(PAGE, language);
    let snippet = found.iter().find(|block| block.contains("CL.THROTTLE"));
    let snippet = snippet.unwrap_or_else(|| panic!("none in {language}"));
    with_ports(snippet, &[("6380", scene.resp.port())])
}

#[test]
fn of_python() {
    let scene = Scene::start(&[]);
    let all = "print(limited, limit, remaining, retry_after, reset_after)\n";
    let script = scene.home.write("snippet.py", &(snippet(&scene, "python") + all));
    let output = run(&installed("python"), &["-B", &script]);
    assert_eq!(contented(&output), "0 16 15 -1 2\n");
    // And what it says about several at once.
    assert!(PAGE.contains("`dashpot.pipeline(transaction=False)`"));
    let several = "several = dashpot.pipeline(transaction=False)\n\
        for nth in range(3):\n    several.execute_command('CL.THROTTLE', nth, 15, 30, 60)\n\
        print(several.execute())\n";
    let script = scene.home.write("several.py", &(snippet(&scene, "python") + several));
    let told = contented(&run(&installed("python"), &["-B", &script]));
    assert_eq!(told, format!("{:?}\n", [[0, 16, 15, -1, 2]; 3]));
}

#[test]
fn of_node() {
    let scene = Scene::start(&[]);
    let all =
        "console.log(limited, limit, remaining, retryAfter, resetAfter);\ndashpot.disconnect();";
    // `await` is for functions, in a file that uses `require`.
    let text = format!("(async () => {{\n{}{all}\n}})();\n", snippet(&scene, "js"));
    let script = scene.home.write("snippet.cjs", &text);
    assert_eq!(contented(&node(&[&script])), "0 16 15 -1 2\n");
}

/// The first thing on the page.
#[test]
fn of_the_shell() {
    let scene = Scene::start(&[]);
    let shell = snippet(&scene, "sh");
    let line = shell.lines().find(|line| line.starts_with("redis-cli ")).unwrap();
    assert_eq!(contented(&run("sh", &["-c", line])), "0\n16\n15\n-1\n2\n");
}

/// What administrators are told to do.
#[test]
fn of_administrators() {
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    assert_eq!(ask(&mut connection, "user123", &[0, 1, 3600])[0], 0);
    assert_eq!(ask(&mut connection, "user123", &[0, 1, 3600])[0], 1);
    let found = blocks(PAGE, "sh");
    let reset = found.iter().find(|block| block.contains("/v1/keys/reset")).unwrap();
    let reset = with_ports(reset, &[("8080", scene.service.address.port())]);
    assert!(contented(&run("sh", &["-c", &reset.replace("curl", "curl -s")])).contains("allow"));
    assert_eq!(ask(&mut connection, "user123", &[0, 1, 3600])[0], 0);
}
