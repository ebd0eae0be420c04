//! ioredis, in all the ways it is used.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::scene::{Scene, contented, run_with};

/// Where `scripts/readers` puts what it installs.
fn modules() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = std::env::var_os("DASHPOT_READERS").unwrap_or_else(|| "target/readers".into());
    let modules = root.join(home).join("node_modules");
    assert!(modules.join("ioredis").is_dir(), "ioredis is not there: run scripts/readers");
    modules
}

/// Node, which finds ioredis.
pub(crate) fn node(arguments: &[&str]) -> Output {
    run_with("node", arguments, |command| {
        command.env("NODE_PATH", modules());
    })
}

/// A case of `ioredis.cjs`, which says nothing if all is well.
#[track_caller]
fn case(scene: &Scene, name: &str, more: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/throttle/ioredis.cjs");
    let output = node(&[&["--throw-deprecation", script, name, &scene.port()], more].concat());
    assert_eq!(contented(&output), "");
}

#[test]
fn plain() {
    case(&Scene::start(&[]), "plain", &[]);
}

#[test]
fn with_what_people_set() {
    case(&Scene::start(&[]), "options", &[]);
}

#[test]
fn in_pipelines() {
    case(&Scene::start(&[]), "pipelines", &[]);
}

#[test]
fn in_pipelines_on_redis() {
    let redis = dashpot_testkit::RedisServer::start();
    case(&Scene::on(&redis), "pipelines", &[]);
}

#[test]
fn with_pipelines_it_makes_itself() {
    case(&Scene::start(&[]), "automatically", &[]);
}

#[test]
fn errors_are_rejections() {
    case(&Scene::start(&[]), "errors", &[]);
}

#[test]
fn with_a_password() {
    let scene = Scene::start(&["--resp-password", "open sesame: ü"]);
    case(&scene, "password", &["open sesame: ü"]);
}

#[test]
fn it_comes_back_by_itself() {
    case(&Scene::start(&[]), "again", &[]);
}
