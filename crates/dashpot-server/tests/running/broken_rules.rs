//! Rules that become wrong while it runs: the last good ones stay.

use std::fs;
use std::time::Duration;

use crate::client::Client;
use crate::service::{Directory, Service, until};

const GOOD: &str = "[[rule]]\nname = 'all'\nby = ['ip']\nlimits = ['10/day']\n";
const REQUEST: &str = r#"{"request":{"path":"/","ip":"203.0.113.7"}}"#;
const SEEN: Duration = Duration::from_secs(10);

fn failed(service: &Service) -> f64 {
    service.metric("dashpot_failed_reloads_total")
}

fn left(client: &mut Client) -> u64 {
    let answer = client.check(REQUEST);
    assert_eq!(answer.json()["policies"][0]["limit"], 10, "{answer:?}");
    answer.remaining()
}

/// The rules become wrong in this way. What it says of that in its log.
fn breaks(how: impl FnOnce(&Directory)) -> String {
    let home = Directory::new();
    let service = Service::with_rules(&home, GOOD, &[]);
    let mut client = service.client();
    assert_eq!(left(&mut client), 9);
    assert_eq!(failed(&service), 0.0);
    how(&home);
    until("the failure to be counted", SEEN, || (failed(&service) >= 1.0).then_some(()));
    assert_eq!(left(&mut client), 8, "the last good rules, and what was used");
    assert_eq!(client.get("/readyz").status, 200);
    let log =
        until("the log", SEEN, || Some(service.log()).filter(|log| log.contains("rules.toml")));
    // And told to read them, it says that it cannot, and changes nothing.
    let before = failed(&service);
    service.signal("HUP");
    let answer = client.post("/v1/rules/reload", "");
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(failed(&service) > before);
    assert_eq!(left(&mut client), 7);
    // When they are right again, they are used.
    home.write("rules.toml", &GOOD.replace("10", "20"));
    let looked =
        || Some(client.check(REQUEST)).filter(|now| now.json()["policies"][0]["limit"] == 20);
    assert!(until("good rules to be used", SEEN, looked).remaining() <= 16);
    log
}

#[test]
fn by_a_wrong_word() {
    let log = breaks(|home| drop(home.write("rules.toml", &GOOD.replace("day", "fortnight"))));
    assert!(log.contains("rules.toml:4:15"), "{log}");
    assert!(log.contains("fortnight"), "{log}");
}

#[test]
fn by_wrong_syntax() {
    let log = breaks(|home| drop(home.write("rules.toml", &GOOD.replace("name =", "name"))));
    assert!(log.contains("rules.toml:2:"), "{log}");
}

/// Written halfway, it may well be right as far as it goes: here it is not.
#[test]
fn by_a_file_that_is_written_halfway() {
    let log = breaks(|home| drop(home.write("rules.toml", &GOOD[..GOOD.len() - 4])));
    assert!(log.contains("rules.toml:4:"), "{log}");
}

#[test]
fn by_a_file_that_is_gone() {
    breaks(|home| fs::remove_file(home.path().join("rules.toml")).unwrap());
}

#[test]
fn by_bytes_that_are_no_text() {
    breaks(|home| fs::write(home.path().join("rules.toml"), b"\xff\xfe\0\0[[rule]]").unwrap());
}

/// An editor that empties a file before it writes must not leave everybody unlimited meanwhile.
#[test]
fn by_a_file_that_is_emptied() {
    breaks(|home| drop(home.write("rules.toml", "")));
}

#[test]
fn a_failure_is_counted_once_and_not_each_time_it_looks() {
    let home = Directory::new();
    let service = Service::with_rules(&home, GOOD, &[]);
    home.write("rules.toml", "[[rule]]\nname = 3\n");
    until("the failure to be counted", SEEN, || (failed(&service) >= 1.0).then_some(()));
    std::thread::sleep(Duration::from_millis(1600));
    assert_eq!(failed(&service), 1.0, "{}", service.log());
    assert_eq!(service.log().matches("rules.toml:2:").count(), 1, "{}", service.log());
}
