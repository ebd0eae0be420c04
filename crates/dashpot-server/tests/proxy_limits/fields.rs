//! Rules that look into bodies: the backend still gets them whole.

use crate::backend::Backend;
use crate::caller::Caller;
use crate::proxy::Proxy;

const BY_EMAIL: &str = "[[rule]]\nname = 'login'\nmatch = { path = '/login' }\n\
    by = ['json:email']\nlimits = ['2/day']\n";

fn post(caller: &mut Caller, body: &str) -> u16 {
    caller.ask("POST", "/login", &["content-type: application/json"], body).status
}

#[test]
fn a_field_is_counted_and_the_body_arrives() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, BY_EMAIL);
    let mut caller = proxy.caller();
    let bodies = [
        r#"{"email":"a@example.com","password":"1"}"#,
        "{ \"password\" : \"\\u0000\",\n \"email\": \" A@Example.com \" }",
        r#"{"email":"b@example.com"}"#,
    ];
    for body in bodies {
        assert_eq!(post(&mut caller, body), 200, "{body}");
    }
    assert_eq!(post(&mut caller, r#"{"email":"A@EXAMPLE.COM"}"#), 429);
    assert_eq!(post(&mut proxy.caller_from(2), r#"{"email":"a@example.com"}"#), 429);
    let arrived: Vec<_> = backend.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(arrived, bodies.map(|body| body.as_bytes().to_vec()));
}

#[test]
fn chunks_are_put_together() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, BY_EMAIL);
    let head = "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let mut caller = proxy.caller();
        caller.send(head);
        for piece in [r#"{"em"#, r#"ail":"a@exa"#, r#"mple.com"}"#] {
            caller.send(format!("{:x}\r\n{piece}\r\n", piece.len()));
        }
        caller.send("0\r\n\r\n");
        statuses.push(caller.answer().status);
    }
    assert_eq!(statuses, [200, 200, 429]);
    for seen in backend.seen() {
        assert_eq!(seen.body, br#"{"email":"a@example.com"}"#);
    }
}

/// What is looked at is bounded, what is passed on is not.
#[test]
fn a_long_body_arrives_whole_whatever_is_looked_at() {
    let backend = Backend::start();
    let rules = format!("[identity]\nmax_body = 100\n{BY_EMAIL}").replace("2/day", "100/day");
    let proxy = Proxy::by(&backend, &rules);
    for length in [10, 70, 100, 101, 1000, 70_000, 1_000_000] {
        backend.forget();
        let body = format!(r#"{{"email":"a@example.com","fill":"{}"}}"#, "x".repeat(length));
        assert_eq!(post(&mut proxy.caller(), &body), 200, "{length}");
        let seen = backend.seen();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].body == body.as_bytes(), "{length}: {} arrived", seen[0].body.len());
    }
}

#[test]
fn a_form_is_looked_into_as_well() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &BY_EMAIL.replace("json:", "form:"));
    let lines = ["content-type: application/x-www-form-urlencoded"];
    let mut statuses = Vec::new();
    for body in ["email=a%40example.com&x=1", "x=2&email=A@example.com", "email=a@example.com"] {
        statuses.push(proxy.caller().ask("POST", "/login", &lines, body).status);
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(backend.seen()[0].body, b"email=a%40example.com&x=1");
}

/// Who asks whether it may send is asked to, since nothing is known before.
#[test]
fn who_asks_whether_it_may_send_a_body_that_is_looked_into_is_answered() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, BY_EMAIL);
    let body = r#"{"email":"a@example.com"}"#;
    let head = format!(
        "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let mut caller = proxy.caller();
        caller.stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        caller.send(&head);
        let first = caller.head().expect("an answer, and no silence");
        assert_eq!(first.status, 100);
        caller.send(body);
        statuses.push(caller.answer().status);
    }
    assert_eq!(statuses, [200, 200, 429]);
}
