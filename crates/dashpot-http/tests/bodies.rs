//! Fields of bodies: they tell callers apart, and the handler gets every byte.

use axum::Router;
use axum::body::Bytes;

use crate::common::{Server, get, limit, post, rules, store};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// Answers with the body it got.
async fn echo(text: &str) -> Server {
    let app = Router::new().fallback(async |body: Bytes| body);
    Server::start(app.layer(limit(rules(text), store().0))).await
}

fn by(fact: &str, limit: &str) -> String {
    format!(
        "[identity]\nmax_body = 1000\n[[rule]]\nname = 'r'\nby = ['{fact}']\nlimits = ['{limit}']"
    )
}

/// A JSON body of this size.
fn json(email: &str, size: usize) -> Vec<u8> {
    let mut body = format!(r#"{{"email":"{email}","pad":""#).into_bytes();
    body.extend((body.len()..size.saturating_sub(2)).map(|n| b'a' + (n % 26) as u8));
    body.extend_from_slice(b"\"}");
    body
}

#[tokio::test]
async fn the_handler_gets_every_byte() {
    let server = echo(&by("json:email", "100000/min")).await;
    let mut bodies = vec![Vec::new(), b"{".to_vec(), (0..=255).collect(), b"null".to_vec()];
    // Around the bound, and far above.
    bodies
        .extend([40, 999, 1000, 1001, 1002, 5_000, 70_000, 300_000].map(|size| json("a@x", size)));
    for body in bodies {
        for kind in [JSON, FORM, "text/plain"] {
            let whole = post("/", kind, body.clone()).send(&server).await;
            assert_eq!(whole.status, 200);
            assert!(whole.body == body, "{kind}: {} bytes", body.len());
            for size in [1, 7, 1000, 16_384] {
                // A byte at a time takes long for large ones, and shows nothing new.
                if body.len() / size > 6000 {
                    continue;
                }
                let whole = post("/", kind, body.clone()).chunked(size).send(&server).await;
                assert_eq!(whole.status, 200);
                assert!(whole.body == body, "{kind}: {} bytes by {size}", body.len());
            }
        }
    }
}

#[tokio::test]
async fn emails_tell_callers_apart() {
    let server = echo(&by("json:email", "2/min")).await;
    for email in ["alice@x.com", "bob@x.com"] {
        let asked = post("/login", JSON, json(email, 50));
        assert_eq!(asked.statuses(&server, 3).await, [200, 200, 429], "{email}");
        // Also in pieces, and from elsewhere.
        assert_eq!(asked.clone().chunked(3).from("127.0.0.2").status(&server).await, 429);
    }
}

/// To a login they are one, so they are one here.
#[tokio::test]
async fn other_spellings_of_an_email_are_the_same_email() {
    let server = echo(&by("json:email", "1/min")).await;
    let bodies = [
        r#"{"email":"alice@x.com"}"#,
        r#"{"email":"Alice@X.com"}"#,
        r#"{"email":" ALICE@x.com\t"}"#,
        r#"{"email":"\u0061lice@x.com"}"#,
        r#"{"email":"alice\u0040x.com","email2":"bob@x.com"}"#,
        // The last one counts, as most servers read it.
        r#"{"email":"bob@x.com","email":"alice@x.com"}"#,
        "\n { \"x\" : [ 1 ], \"email\" :\r\n\"alice@x.com\" } ",
    ];
    for (n, body) in bodies.iter().enumerate() {
        let status = post("/", JSON, *body).status(&server).await;
        assert_eq!(status, if n == 0 { 200 } else { 429 }, "{body}");
    }
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/ld+json"] {
        assert_eq!(post("/", kind, bodies[0]).status(&server).await, 429, "{kind}");
    }
    assert_eq!(post("/", JSON, r#"{"email":"bob@x.com"}"#).status(&server).await, 200);
}

#[tokio::test]
async fn fields_of_forms_tell_callers_apart() {
    let server = echo(&by("form:email", "1/min")).await;
    let bodies = ["email=alice%40x.com", "a=b&email=Alice@X.com", "%65mail=+alice%40x.com+&c"];
    for (n, body) in bodies.iter().enumerate() {
        let status = post("/", FORM, *body).status(&server).await;
        assert_eq!(status, if n == 0 { 200 } else { 429 }, "{body}");
    }
    assert_eq!(post("/", FORM, "email=bob%40x.com").status(&server).await, 200);
}

/// Some servers read the first of several values, some the last. If one of them counted, a caller
/// would send the other to the server.
#[tokio::test]
async fn two_values_of_one_field_are_none() {
    let server = echo(&by("form:email", "1/min")).await;
    for n in 0..3 {
        let bodies = [format!("email=u{n}&email=victim"), format!("email=victim&%65mail=u{n}")];
        for (m, body) in bodies.iter().enumerate() {
            let status = post("/", FORM, body.as_bytes()).status(&server).await;
            assert_eq!(status, if n + m == 0 { 200 } else { 429 }, "{body}");
        }
    }
    // Said twice is said.
    assert_eq!(post("/", FORM, "email=alice&email=alice").status(&server).await, 200);
    assert_eq!(post("/", FORM, "email=alice").status(&server).await, 429);
}

/// Whatever cannot be read opens no hole: all of it is one caller.
#[tokio::test]
async fn what_cannot_be_read_shares_one_bucket() {
    let padded = |n: usize| json(&format!("u{n}@x.com"), 1001);
    let tricks: Vec<(&str, crate::common::Ask)> = vec![
        ("too large", post("/", JSON, padded(1))),
        ("too large, by another", post("/", JSON, padded(2))),
        ("too large, in pieces", post("/", JSON, padded(3)).chunked(10)),
        ("far too large", post("/", JSON, json("u4@x.com", 200_000))),
        ("no body", get("/")),
        ("no type", post("/", "", json("u5@x.com", 50))),
        ("another type", post("/", "text/plain", json("u6@x.com", 50))),
        ("a form in place of JSON", post("/", FORM, "email=u7%40x.com")),
        ("compressed", post("/", JSON, json("u8@x.com", 50)).line("content-encoding", "gzip")),
        ("no JSON", post("/", JSON, "{'email':'u9@x.com'}")),
        ("cut short", post("/", JSON, r#"{"email":"u10@x.com""#)),
        ("no field", post("/", JSON, r#"{"e-mail":"u11@x.com"}"#)),
        ("null", post("/", JSON, r#"{"email":null}"#)),
        ("empty", post("/", JSON, r#"{"email":"  "}"#)),
        ("a list", post("/", JSON, r#"{"email":["u12@x.com"]}"#)),
        ("an object", post("/", JSON, r#"{"email":{"u13":1}}"#)),
        ("a list outside", post("/", JSON, r#"[{"email":"u14@x.com"}]"#)),
        ("no UTF-8", post("/", JSON, b"{\"email\":\"\xff\"}".to_vec())),
        ("a mark in front", post("/", JSON, "\u{feff}{\"email\":\"u15@x.com\"}")),
    ];
    let server = echo(&by("json:email", "1/min")).await;
    for (n, (name, trick)) in tricks.iter().enumerate() {
        let status = trick.status(&server).await;
        assert_eq!(status, if n == 0 { 200 } else { 429 }, "{name}");
    }
    assert_eq!(post("/", JSON, json("a@x.com", 1000)).status(&server).await, 200);
}

#[tokio::test]
async fn who_insists_on_a_field_refuses_those_without() {
    let text = by("json:email", "1/min") + "\nabsent = 'deny'";
    let server = echo(&text).await;
    assert_eq!(post("/", JSON, json("a@x.com", 1001)).status(&server).await, 403);
    assert_eq!(post("/", JSON, "{}").status(&server).await, 403);
    assert_eq!(post("/", JSON, json("a@x.com", 1000)).status(&server).await, 200);
}

/// Document 1 asks for it: by address and by email, each with its own limit.
#[tokio::test]
async fn a_login_is_limited_by_address_and_by_email() {
    let text = r#"
        [[rule]]
        name = "login-ip"
        match = { method = "POST", path = "/login" }
        by = ["ip"]
        limits = ["3/5min"]

        [[rule]]
        name = "login-email"
        match = { method = "POST", path = "/login" }
        by = ["json:user.email"]
        limits = ["2/h"]
    "#;
    let server = echo(text).await;
    let body = |name: &str| format!(r#"{{"user":{{"email":"{name}@x.com"}}}}"#);
    // Many addresses against one email.
    for (n, from) in ["127.0.0.1", "127.0.0.2", "127.0.0.3"].iter().enumerate() {
        let asked = post("/login", JSON, body("alice")).from(from);
        assert_eq!(asked.status(&server).await, if n < 2 { 200 } else { 429 });
    }
    // One address against many emails.
    for n in 0..4 {
        let asked = post("/login", JSON, body(&format!("u{n}"))).from("127.0.0.9");
        assert_eq!(asked.status(&server).await, if n < 3 { 200 } else { 429 });
    }
    // Elsewhere no body is looked at.
    assert_eq!(post("/other", JSON, body("alice")).status(&server).await, 200);
}
