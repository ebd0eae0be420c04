//! Ways around a limit that somebody once found.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get as route;
use dashpot::{
    Check, Cost, Decision, Key, KeyOperation, MemoryStore, Policy, Reservation, Store, StoreError,
    Timestamp,
};
use dashpot_http::{Facts, HttpDescriptor, Peer, RateLimitLayer};
use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{Server, get, limit, post, rules, store};

async fn served(text: &str, app: Router) -> Server {
    Server::start(app.layer(limit(rules(text), store().0))).await
}

/// axum does not resolve dots: what is below `/api` stays there, whatever it says.
#[tokio::test]
async fn dots_are_no_way_out_of_a_rule() {
    let text = "[[rule]]\nname = 'api'\nmatch = { path = '/api/*' }\nby = 'ip'\nlimits = '1/h'";
    let app = Router::new().route("/api/{*rest}", route(async || "served"));
    let server = served(text, app).await;
    assert_eq!(get("/api/x").statuses(&server, 2).await, [200, 429]);
    for path in ["/api/../x", "/api/%2e%2e/x", "/api/real/../..", "/api/./../x", "/api//../x"] {
        assert_eq!(get(path).status(&server).await, 429, "{path}");
    }
}

#[tokio::test]
async fn dots_are_no_way_into_a_privilege() {
    let text = "
        [[priority]]
        name = 'webhook'
        match = { path = '/webhooks/*' }
        weight = 'unlimited'
        [[rule]]
        name = 'all'
        by = 'ip'
        limits = '1/h'";
    let app = Router::new().fallback(async || "served");
    let server = served(text, app).await;
    assert_eq!(get("/files/../webhooks/x").statuses(&server, 2).await, [200, 429]);
    assert_eq!(get("/webhooks/../files").status(&server).await, 429);
    assert_eq!(get("/webhooks/x").statuses(&server, 2).await, [200, 200]);
}

/// One network of IPv6 is one caller, also if the application says what its address is.
#[tokio::test]
async fn addresses_of_the_application_are_counted_by_network() {
    let text = "[[rule]]\nname = 'r'\nby = 'ip'\nlimits = '1/h'";
    let inner = service_fn(async |_: Request<Body>| {
        Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
    });
    let service = limit(rules(text), store().0).layer(inner);
    let ask = async |address: &str| {
        let mut request = Request::new(Body::empty());
        let address: IpAddr = address.parse().unwrap();
        request.extensions_mut().insert(Facts::new().ip(address));
        service.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    assert_eq!(ask("2001:db8::1").await, 200);
    assert_eq!(ask("2001:db8::2").await, 429);
    assert_eq!(ask("2001:db8:0:1::2").await, 200);
}

/// Who is on the default tier is on a tier.
#[tokio::test]
async fn rules_for_the_default_tier_are_for_those_on_it() {
    let text = "
        [identity]
        default_tier = 'free'
        [[rule]]
        name = 'free'
        match = { fact = { tier = 'free' } }
        by = 'ip'
        limits = '1/h'";
    let server = Server::limited(rules(text)).await;
    assert_eq!(get("/").statuses(&server, 2).await, [200, 429]);
}

#[tokio::test]
async fn a_block_is_not_dodged_by_spelling() {
    let text = "
        [block]
        path = '/admin/'
        'json:email' = 'Bad@X.com'
        [[rule]]
        name = 'r'
        limits = '100/h'";
    let server = Server::limited(rules(text)).await;
    for path in ["/admin", "//admin", "/admin/", "/%61dmin"] {
        assert_eq!(get(path).status(&server).await, 403, "{path}");
    }
    for email in ["Bad@X.com", "bad@x.com", " BAD@x.com "] {
        let body = format!("{{\"email\":\"{email}\"}}");
        let login = post("/login", "application/json", body);
        assert_eq!(login.status(&server).await, 403, "{email}");
    }
}

#[test]
fn what_is_known_of_a_request_is_not_printed() {
    let rules = rules("[[rule]]\nname = 'r'\nlimits = '1/h'");
    let mut request = Request::new(());
    *request.uri_mut() = "/x?token=s3cret".parse().unwrap();
    request.headers_mut().insert("authorization", "Bearer s3cret".parse().unwrap());
    let body = bytes::Bytes::from_static(b"{\"password\":\"s3cret\"}");
    let shown = format!("{:?}", HttpDescriptor::new(&rules, &request, Some(&body)));
    assert!(!shown.contains("s3cret") && shown.contains("/x"), "{shown}");
}

/// Fields of one kind come from one place.
#[tokio::test]
async fn what_an_inner_service_tells_is_not_mixed_with_ours() {
    let text = "[[rule]]\nname = 'outer'\nlimits = '9/h'";
    let inner = async || ([("ratelimit", "\"inner\";r=3;t=9")], "served");
    let server = served(text, Router::new().fallback(inner)).await;
    let answer = get("/").send(&server).await;
    assert_eq!(answer.get("ratelimit"), Some("\"inner\";r=3;t=9"));
    assert_eq!(answer.get("ratelimit-policy"), None);
}

/// Nobody waits for the body of somebody who is refused anyway.
#[tokio::test]
async fn who_is_over_a_limit_cannot_make_us_wait_for_a_body() {
    let text = "
        [[rule]]
        name = 'ip'
        by = 'ip'
        limits = '1/h'
        [[rule]]
        name = 'email'
        by = 'json:email'
        limits = '5/h'";
    let server = Server::limited(rules(text)).await;
    let login = post("/login", "application/json", "{\"email\":\"a@x.com\"}");
    assert_eq!(login.status(&server).await, 200);
    // The head alone, and a body that never comes.
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = "POST /login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
    let answer = crate::common::Answer::read_head(&mut stream);
    let answer = tokio::time::timeout(Duration::from_secs(5), answer).await.expect("at once");
    assert_eq!(answer.status, 429);
    // And it was not charged for it.
    assert!(answer.get("ratelimit").unwrap().starts_with("\"ip\";r=0"));
}

/// A store that takes its time.
struct Remote(MemoryStore);

impl Store for Remote {
    async fn decide<'p>(&self, checks: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(self.0.decide_now(checks))
    }

    async fn settle(&self, reservation: &Reservation, used: Cost) -> Result<Timestamp, StoreError> {
        Ok(self.0.settle_now(reservation, used))
    }

    async fn undo(&self, reservation: &Reservation) -> Result<Timestamp, StoreError> {
        Ok(self.0.undo_now(reservation))
    }

    async fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        Ok(self.0.manage_now(policy, key, operation))
    }
}

/// Who leaves while others are only counted has given its permit back.
#[tokio::test(start_paused = true)]
async fn permits_do_not_leak_while_shadow_rules_are_asked() {
    let text = "
        [[rule]]
        name = 'flight'
        limits = '1 concurrent'
        [[rule]]
        name = 'counted'
        limits = '100/h'
        shadow = true";
    let inner = service_fn(async |_: Request<Body>| {
        Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
    });
    let store = Arc::new(Remote(MemoryStore::new()));
    let service = RateLimitLayer::from_rules(rules(text), store).layer(inner);
    let request = || {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(Peer("192.0.2.1:1".parse().unwrap()));
        request
    };
    for _ in 0..2 {
        let left = service.clone().oneshot(request());
        assert!(tokio::time::timeout(Duration::from_millis(30), left).await.is_err());
    }
    assert_eq!(service.clone().oneshot(request()).await.unwrap().status(), 200);
}
