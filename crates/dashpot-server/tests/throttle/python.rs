//! redis-py, in all the ways it is used.

use rcgen::{CertificateParams, KeyPair};

use crate::scene::{Scene, contented, run};
use crate::service::Directory;
use crate::tools::installed;

/// A case of `redis_py.py`, which says nothing if all is well.
#[track_caller]
fn case(scene: &Scene, name: &str, more: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/throttle/redis_py.py");
    let port = scene.port();
    let arguments = [&["-W", "error", "-B", script, name, &port], more].concat();
    assert_eq!(contented(&run(&installed("python"), &arguments)), "");
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
fn with_decoded_responses() {
    case(&Scene::start(&[]), "decoded", &[]);
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
fn errors_are_exceptions() {
    case(&Scene::start(&[]), "errors", &[]);
}

#[test]
fn with_a_pool() {
    case(&Scene::start(&[]), "pool", &[]);
}

#[test]
fn with_asyncio() {
    case(&Scene::start(&[]), "asynchronous", &[]);
}

#[test]
fn with_a_password() {
    let scene = Scene::start(&["--resp-password", "open sesame: ü"]);
    case(&scene, "password", &["open sesame: ü"]);
}

#[test]
fn with_a_password_where_there_is_none() {
    case(&Scene::start(&[]), "no_password", &[]);
}

#[test]
fn with_tls() {
    let home = Directory::new();
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    home.write("key.pem", &key.serialize_pem());
    let file = home.write("certificate.pem", &certificate.pem());
    let scene =
        Scene::start_in(home, &["--tls-certificate", "certificate.pem", "--tls-key", "key.pem"]);
    case(&scene, "encrypted", &[&file]);
}
