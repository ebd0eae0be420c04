//! Where it listens.

use std::net::TcpListener;

use crate::client::PATIENCE;
use crate::scene::Scene;
use crate::service::{Directory, Service, command, refusal, until};

#[test]
fn it_may_be_done_without() {
    let service = Service::start(&["--resp-listen", "off"]);
    // It comes after the address, if it comes.
    let told = until("the greeting", PATIENCE, || {
        Some(service.stdout()).filter(|told| told.contains("curl"))
    });
    assert!(!told.contains("RESP"), "{told}");
    assert_eq!(service.client().get("/healthz").status, 200);
}

#[test]
fn a_flag_or_a_variable_says_where() {
    let scene = Scene::start(&["--resp-listen", "127.0.0.1:0"]);
    assert!(scene.resp.ip().is_loopback());
    scene.serves();
    let home = Directory::new();
    let mut command = command(home.path(), &["--listen", "127.0.0.1:0"]);
    command.env("DASHPOT_RESP_LISTEN", "127.0.0.2:0");
    let scene = Scene::run(home, command);
    assert_eq!(scene.resp.ip().to_string(), "127.0.0.2");
    scene.serves();
}

#[test]
fn a_port_that_is_taken_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = Directory::new();
    for wrong in [&address, "nowhere"] {
        let arguments = ["--listen", "127.0.0.1:0", "--resp-listen", wrong];
        let (code, told) = refusal(home.path(), &arguments);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains("--resp-listen"), "{told}");
        assert!(told.contains(wrong), "{told}");
    }
}
