//! What the other flags do.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::client::forward_auth;
use crate::service::{Directory, Service, until};

const RULES: &str = "[[rule]]\nname = 'all'\nlimits = ['7/day']\n";
const SOON: Duration = Duration::from_secs(10);

/// What it logs when rules become wrong and it is stopped.
fn log_of(arguments: &[&str]) -> String {
    let home = Directory::new();
    let all = [&["--drain-delay", "0s"], arguments].concat();
    let mut service = Service::with_rules(&home, RULES, &all);
    home.write("rules.toml", "[[rule]]\nname = 'all'\nlimits = ['7/fortnight', '7/blue moon']\n");
    assert_eq!(service.client().post("/v1/rules/reload", "").status, 400);
    until("the failure", SOON, || {
        (service.metric("dashpot_failed_reloads_total") >= 1.0).then_some(())
    });
    service.signal("TERM");
    assert_eq!(service.end(SOON).code(), Some(0));
    service.log()
}

#[test]
fn the_log_is_for_machines_if_they_ask() {
    let log = log_of(&["--log-format", "json"]);
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert!(lines.iter().all(|line| line["level"].is_string()), "{log}");
    assert!(lines.iter().any(|line| line.to_string().contains("rules.toml:3:")), "{log}");
}

#[test]
fn the_log_says_as_much_as_is_wanted() {
    assert_eq!(log_of(&["--log-level", "off"]), "");
    let errors = log_of(&["--log-level", "error"]);
    assert!(!errors.contains("INFO") && !errors.contains("WARN"), "{errors}");
    let usual = log_of(&[]);
    assert!(
        usual.contains("fortnight") && usual.contains("blue moon"),
        "all that is wrong: {usual}"
    );
}

#[test]
fn it_has_the_threads_it_is_told_to_have() {
    let threads = |count: &str| {
        let service = Service::start(&["--threads", count]);
        assert_eq!(service.client().get("/healthz").status, 200);
        fs::read_dir(format!("/proc/{}/task", service.process())).unwrap().count()
    };
    let (one, six) = (threads("1"), threads("6"));
    assert_eq!(six - one, 5, "{one} and {six}");
}

#[test]
fn a_reservation_can_be_settled_for_so_long() {
    let service = Service::start(&["--reservation-ttl", "1s"]);
    let mut client = service.client();
    let asked =
        r#"{"key":"alice","limit":"1 concurrent","algorithm":"concurrency","reserve":true}"#;
    let answer = client.check(asked);
    assert!(answer.allowed(), "{answer:?}");
    let reservation = answer.json()["reservation"].as_str().unwrap().to_owned();
    assert!(!client.check(asked).allowed(), "it is held");
    until("the permit to come back", SOON, || client.check(asked).allowed().then_some(()));
    let settled = format!(r#"{{"reservation":"{reservation}","used":0}}"#);
    assert_eq!(client.post("/v1/settle", &settled).status, 410);
    assert_eq!(service.metric("dashpot_lapsed_reservations_total"), 1.0);
}

#[test]
fn a_token_is_in_a_file_and_nowhere_else() {
    let home = Directory::new();
    home.write("token", "a-token-nobody-knows\n");
    let arguments = ["--admin-token-file", "token", "--log-level", "trace"];
    let service = Service::start_in(home.path(), &arguments);
    let mut client = service.client();
    let mut asked_with = |more: &str| {
        client.send(format!("GET /v1/health HTTP/1.1\r\nhost: localhost\r\n{more}\r\n"));
        client.expect()
    };
    assert_eq!(asked_with("").status, 401);
    assert_eq!(asked_with("authorization: Bearer a-token-nobody-know\r\n").status, 401);
    assert_eq!(asked_with("authorization: Bearer a-token-nobody-knows\r\n").status, 200);
    let metrics = client.get("/metrics").body;
    for told in [metrics, service.log(), service.stdout()] {
        assert!(!told.contains("nobody-knows"), "{told}");
    }
}

/// What everybody may ask goes on, whoever administers.
#[test]
fn checks_need_no_token() {
    let home = Directory::new();
    let service = Service::with_rules(&home, RULES, &["--admin-token", "a-token-nobody-knows"]);
    let mut client = service.client();
    assert!(client.check(r#"{"request":{"path":"/"}}"#).allowed());
    client.send(forward_auth("/"));
    assert_eq!(client.expect().status, 200);
    assert_eq!(client.post("/v1/rules/reload", "").status, 401);
}
