//! redis-benchmark.

use crate::scene::{Scene, run};

/// What it says that has nothing to complain about.
fn benchmark(scene: &Scene, arguments: &[&str]) -> String {
    let output = run("redis-benchmark", &[&["-p", &scene.port()], arguments].concat());
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    for complaint in ["error", "ERR", "WARN", "Cell", "fail"] {
        assert!(!told.contains(complaint), "{complaint}: {told}");
    }
    assert!(told.contains("requests per second") || told.contains("rps"), "{told}");
    told.into_owned()
}

fn decided(scene: &Scene) -> f64 {
    ["allowed", "denied"]
        .map(|what| {
            scene.service.metric(&format!("dashpot_rule_{what}_total{{rule=\"(throttle)\"}}"))
        })
        .iter()
        .sum()
}

#[test]
fn throttles_by_the_thousand() {
    let scene = Scene::start(&[]);
    let asked = ["CL.THROTTLE", "key:__rand_int__", "15", "30", "60"];
    benchmark(&scene, &[&["-n", "2000", "-c", "10", "-P", "16", "-q"], &asked[..]].concat());
    let first = decided(&scene);
    assert!(first >= 2000.0, "{first}");
    // With as many keys.
    let flags = ["-n", "2000", "-c", "10", "-P", "16", "-r", "1000000", "-q"];
    benchmark(&scene, &[&flags, &asked[..]].concat());
    assert!(decided(&scene) - first >= 2000.0);
    let keys = scene.service.metric("dashpot_memory_keys");
    assert!(keys > 1500.0, "{keys} keys");
    // On many threads, and in RESP3.
    let flags = ["-n", "2000", "-c", "8", "--threads", "2", "-q", "-3"];
    benchmark(&scene, &[&flags, &asked[..]].concat());
}

#[test]
fn pings() {
    let scene = Scene::start(&[]);
    let told = benchmark(&scene, &["-t", "ping", "-n", "2000", "-c", "10", "-q"]);
    assert!(told.contains("PING_INLINE") && told.contains("PING_MBULK"), "{told}");
    benchmark(&scene, &["-t", "ping", "-n", "2000", "-c", "10", "-P", "50", "--csv", "-q"]);
}

#[test]
fn with_a_password() {
    let scene = Scene::start(&["--resp-password", "open-sesame"]);
    let flags = ["-a", "open-sesame", "-n", "500", "-c", "5", "-q"];
    benchmark(&scene, &[&flags, &["CL.THROTTLE", "k", "15", "30", "60"][..]].concat());
    benchmark(&scene, &[&["--user", "default"], &flags[..], &["-t", "ping"]].concat());
}
