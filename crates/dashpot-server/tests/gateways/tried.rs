//! What the pages say to try, tried: gateways/nginx.md, gateways/caddy.md, gateways/traefik.md and gateways/envoy.md, with the rules and
//! the commands they show, and answered as they show.

use crate::client::{Answer, Caller};
use crate::page::{block, blocks};
use crate::scene::Scene;

fn page(name: &str) -> String {
    let file = format!("{}/../../docs/gateways/{name}.md", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn tried(name: &str, scene: fn(&str) -> Scene) {
    let page = page(name);
    let commands = block(&page, "sh");
    assert!(
        commands.contains("for i in 1 2 3 4 5 6; do curl -i 127.0.0.1:8000/api/books; done"),
        "{commands}"
    );
    let scene = scene(&block(&page, "toml"));
    let answers: Vec<Answer> = (0..6).map(|_| scene.get(Caller(1), "/api/books")).collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    let shown = blocks(&page, "text");
    assert!(!shown.is_empty());
    for shown in shown {
        let (first, rest) = shown.split_once('\n').unwrap();
        let status: u16 = first.split(' ').nth(1).unwrap().parse().unwrap();
        let answer = answers.iter().find(|answer| answer.status == status).unwrap();
        is_shown(answer, rest);
    }
}

/// An answer has the fields and the body that are shown; time may have passed, and `…` is whatever there is.
fn is_shown(answer: &Answer, shown: &str) {
    let (head, body) = shown.split_once("\n\n").unwrap_or((shown, ""));
    for line in head.trim().lines() {
        let (name, value) = line.split_once(": ").unwrap();
        let told = answer.field(name).unwrap_or_else(|| panic!("no {name}: {answer:?}"));
        let known = answer.fields.iter().any(|(known, _)| known == name);
        assert!(known, "{name} is written otherwise: {answer:?}");
        assert_eq!(but_for_time(told), but_for_time(value), "{name}");
    }
    let mut rest = but_for_time(&answer.body);
    for part in body.trim().split('…').map(but_for_time) {
        let place = rest.find(&part).unwrap_or_else(|| panic!("no {part} in {}", answer.body));
        rest = rest.split_off(place + part.len());
    }
}

/// Waits of a second or two are the same here, and so are times of a reset.
fn but_for_time(text: &str) -> String {
    let mut told = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        told.push(letter);
        let is_time = told.ends_with(";t=") || told.ends_with("\"retry_after\":");
        if is_time || (told.len() == 1 && text.len() == 1 && letter.is_ascii_digit()) {
            while letters.peek().is_some_and(char::is_ascii_digit) {
                letters.next();
            }
            told.push('#');
        }
    }
    if told.len() == 2 && told.ends_with('#') { "#".to_owned() } else { told }
}

#[test]
fn behind_nginx() {
    tried("nginx", crate::nginx::scene);
}

#[test]
fn behind_caddy() {
    tried("caddy", crate::caddy::scene);
}

#[test]
fn behind_traefik() {
    tried("traefik", crate::traefik::scene);
}

#[test]
fn behind_envoy() {
    tried("envoy", crate::envoy::scene);
}
