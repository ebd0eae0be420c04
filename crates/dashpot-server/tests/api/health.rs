//! Whether it runs, whether to send it requests, and how it stops.

use serde_json::json;

use crate::support::{Server, until};

#[test]
fn it_runs_and_is_ready() {
    let server = Server::start(&[]);
    for path in ["/healthz", "/readyz"] {
        server.get(path).is(200);
        server
            .ask("GET", path, &[("Host", "10.0.0.9:8080"), ("X-Forwarded-For", "1.2.3.4")])
            .is(200);
    }
    let health = server.get("/v1/health").is(200).json();
    assert_eq!(health["store"], "memory", "{health}");
    assert_eq!(health["up"], true, "{health}");
    assert_eq!(health["memory"]["keys"], 0, "{health}");
    server.check(&json!({"key": "a", "limit": "5/h"})).allowed();
    assert_eq!(server.get("/v1/health").json()["memory"]["keys"], 1);
}

#[test]
fn before_the_socket_closes_it_is_not_ready() {
    let mut server = Server::start(&["--drain-delay", "1500ms", "--drain-timeout", "2s"]);
    let mut kept = server.client();
    kept.get("/readyz").is(200);
    server.signal("-TERM");
    until("it is told to stop", || kept.get("/readyz").status == 503);
    // The socket is still open: who has not heard yet is answered.
    server.get("/healthz").is(200);
    server.get("/readyz").is(503);
    server.check(&json!({"key": "a", "limit": "5/h"})).allowed();
    drop(kept);
    let status = server.ended();
    assert!(status.success(), "{status}");
}

#[test]
fn counts_outlive_a_restart_if_there_is_a_file() {
    let flags = ["--drain-delay", "1ms", "--state-file"];
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("api-state-{}", std::process::id()));
    let file = file.to_str().unwrap();
    let ask = json!({"key": "a", "limit": "5/day"});
    let mut first = Server::start(&[&flags[..], &[file]].concat());
    first.check(&ask).allowed();
    first.check(&ask).allowed();
    first.signal("-TERM");
    assert!(first.ended().success());
    let second = Server::start(&[&flags[..], &[file]].concat());
    assert_eq!(second.check(&ask).allowed().remaining(), 2);
    drop(second);
    let _ = std::fs::remove_file(file);
}
