//! Who may not tell, and what cannot be told.

use super::{Patient, quick, with_lines};

fn patient(flags: &[&str]) -> Patient {
    let rules = quick("r", "limits = ['10/day']")
        + "[[rule]]\nname = 'fixed'\nlimits = ['10/day']\n\
           [[rule]]\nname = 'worker'\ncapacity = { limit = 2 }\n";
    Patient::with(&rules, flags)
}

/// What is told, and the field that is wrong.
const WRONG: [(&str, &str); 16] = [
    (r#"{"errors":1.01}"#, "errors"),
    (r#"{"errors":-0.01}"#, "errors"),
    (r#"{"cpu":93}"#, "cpu"),
    (r#"{"errors":1,"slow":2}"#, "slow"),
    (r#"{"cpu":"93%"}"#, "cpu"),
    (r#"{"errors":true}"#, "errors"),
    (r#"{"errors":1,"for":"61min"}"#, "for"),
    (r#"{"errors":1,"for":"2h"}"#, "for"),
    (r#"{"errors":1,"for":"10"}"#, "for"),
    (r#"{"errors":1,"for":"-1s"}"#, "for"),
    (r#"{"errors":1,"for":10}"#, "for"),
    (r#"{"errors":1,"rule":"nobody"}"#, "rule"),
    (r#"{"errors":1,"rule":"fixed"}"#, "rule"),
    (r#"{"errors":1,"rule":"worker"}"#, "rule"),
    (r#"{"errors":1,"rule":7}"#, "rule"),
    (r#"{"errors":1,"disk":0.5}"#, "disk"),
];

#[test]
fn what_is_wrong_is_named_and_changes_nothing() {
    let patient = patient(&[]);
    let mut client = patient.client();
    for (told, field) in WRONG {
        let answer = client.post("/v1/health", told);
        assert_eq!(answer.status, 400, "{told}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{told}");
        assert_eq!(answer.json()["field"], field, "{told}: {answer:?}");
    }
    for told in ["", "[]", "1", "errors", "{\"errors\":1", "{\"errors\":1e999}"] {
        let answer = client.post("/v1/health", told);
        assert_eq!(answer.status, 400, "{told}: {answer:?}");
    }
    patient.keeps_factor("r", 1.0);
}

#[test]
fn an_hour_is_the_most() {
    let patient = patient(&[]);
    for longest in ["1h", "60min", "3600s"] {
        let told = format!("{{\"errors\":0,\"for\":\"{longest}\"}}");
        assert_eq!(patient.client().post("/v1/health", &told).status, 200, "{longest}");
    }
    let told = r#"{"errors":0,"for":"3601s"}"#;
    assert_eq!(patient.client().post("/v1/health", told).status, 400);
}

#[test]
fn other_methods_and_bodies_are_refused() {
    let patient = patient(&[]);
    for method in ["PUT", "DELETE", "PATCH"] {
        let mut client = patient.client();
        client.send(with_lines(method, "/v1/health", &[], r#"{"errors":1}"#));
        assert_eq!(client.expect().status, 405, "{method}");
    }
    let long = format!("{{\"errors\":1{}}}", " ".repeat(65 * 1024));
    assert_eq!(patient.client().post("/v1/health", &long).status, 413);
    let mut client = patient.client();
    client.send(with_lines("POST", "/v1/health", &["content-encoding: gzip"], r#"{"errors":1}"#));
    assert_eq!(client.expect().status, 415);
    patient.keeps_factor("r", 1.0);
}

#[test]
fn with_a_token_it_has_to_be_shown() {
    let patient = patient(&["--admin-token", "correct-horse"]);
    let tell = |lines: &[&str]| {
        let mut client = patient.client();
        client.send(with_lines("POST", "/v1/health", lines, r#"{"errors":1,"for":"1h"}"#));
        client.expect().status
    };
    let look = || {
        let mut client = patient.client();
        let token = ["authorization: Bearer correct-horse"];
        client.send(with_lines("GET", "/v1/health", &token, ""));
        client.expect().json()["adaptive"][0]["factor"].as_f64().unwrap()
    };
    assert_eq!(tell(&[]), 401);
    assert_eq!(tell(&["authorization: Bearer battery-staple"]), 401);
    assert_eq!(patient.client().get("/v1/health").status, 401);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(look(), 1.0);
    assert_eq!(tell(&["authorization: Bearer correct-horse"]), 200);
    crate::service::until("to be believed", super::SOON, || (look() == 0.5).then_some(()));
}

#[test]
fn without_a_token_whoever_comes_through_others_is_refused() {
    let patient = patient(&[]);
    let forwarded = ["x-forwarded-for: 203.0.113.7", "forwarded: for=203.0.113.7"];
    for line in [forwarded[0], forwarded[1], "origin: https://evil.example"] {
        let mut client = patient.client();
        client.send(with_lines("POST", "/v1/health", &[line], r#"{"errors":1,"for":"1h"}"#));
        assert_eq!(client.expect().status, 403, "{line}");
    }
    patient.keeps_factor("r", 1.0);
}
