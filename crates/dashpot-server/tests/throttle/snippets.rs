//! What the page tells people to write is run as it stands there; only the port is another.

use crate::node::node;
use crate::page::{blocks, with_ports};
use crate::scene::{Scene, contented, run};
use crate::tools::installed;

const PAGE: &str = include_str!("../../../../docs/resp.md");

/// What the page shows in this language, for this service.
fn snippet(scene: &Scene, language: &str) -> String {
    let found = blocks(PAGE, language);
    let [snippet] = &found[..] else { panic!("{} in {language}", found.len()) };
    assert!(snippet.contains("CL.THROTTLE"), "{snippet}");
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
