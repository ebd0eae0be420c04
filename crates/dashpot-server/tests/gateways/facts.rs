//! What holds behind every gateway.

use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Answer, Caller};
use crate::scene::Scene;

/// For all but the first of these facts. Nothing comes back while a test runs.
pub(crate) const RULES: &str = r#"
[identity]
trusted_proxies = ["127.0.0.1/32"]

[block]
ip = ["127.0.0.66"]

[[rule]]
name = "api"
match = { path = "/api/*" }
by = ["ip"]
limits = ["3/h"]

[[rule]]
name = "login"
match = { method = "POST", path = "/login" }
by = ["ip"]
limits = ["1/h"]

[[rule]]
name = "hosted"
match = { host = "limited.example", path = "/hosted" }
by = ["ip"]
limits = ["1/h"]

[[rule]]
name = "search"
match = { path = "/search" }
by = ["query:q"]
limits = ["1/h"]

[[rule]]
name = "file"
match = { path = "/files/{name}" }
by = ["param:name"]
limits = ["1/h"]
"#;

const ALICE: Caller = Caller(2);
const BOB: Caller = Caller(3);
const BLOCKED: Caller = Caller(66);

/// Whether allowed callers are told how they stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnAllow {
    Told,
    Silent,
}

/// Whose words a denied caller reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    Ours,
    Gateways,
}

/// By the rules of the page: 5/10s. The only fact that takes time.
pub(crate) fn who_is_over_the_limit_waits(scene: &Scene, on_allow: OnAllow, denial: Denial) {
    let begin = Instant::now();
    let mut passed = 0;
    let denied = loop {
        let answer = scene.get(ALICE, "/api/books");
        if answer.status != 200 {
            break answer;
        }
        passed += 1;
        // One comes back every two seconds, however slow this machine is.
        assert!(passed <= 5 + begin.elapsed().as_secs() / 2, "{passed} have passed");
        assert_eq!(answer.body, "the application's own");
        let told = answer.field("ratelimit").is_some_and(|told| told.starts_with("\"api\";r="));
        assert_eq!(told, on_allow == OnAllow::Told, "{answer:?}");
        let policy = answer.field("ratelimit-policy").is_some_and(|told| told.contains("q=5"));
        assert_eq!(policy, on_allow == OnAllow::Told, "{answer:?}");
    };
    assert!(passed >= 5, "only {passed} have passed");
    assert_eq!(scene.seen().len() as u64, passed, "no other reached the application");
    is_denial(&denied, denial);
    assert!(denied.retry_after() <= 2, "{denied:?}");

    assert_eq!(scene.get(BOB, "/api/books").status, 200, "others have limits of their own");
    thread::sleep(Duration::from_secs(denied.retry_after()));
    assert_eq!(scene.get(ALICE, "/api/books").status, 200, "waiting is enough");
    assert_eq!(scene.seen().len(), 2);
}

fn is_denial(answer: &Answer, denial: Denial) {
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(answer.retry_after() >= 1, "{answer:?}");
    assert_eq!(answer.field("content-type"), Some("application/problem+json"), "{answer:?}");
    assert_eq!(answer.field("cache-control"), Some("no-store"), "{answer:?}");
    assert!(answer.field("ratelimit").is_some(), "{answer:?}");
    assert!(answer.field("ratelimit-policy").is_some(), "{answer:?}");
    let body: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(body["status"], 429);
    assert_eq!(body["retry_after"], answer.retry_after());
    assert_eq!(body["violated-policies"].is_array(), denial == Denial::Ours, "{body}");
}

/// What only a gateway may say is ignored when a caller says it, or refused.
pub(crate) fn forging_buys_nothing(scene: &Scene) {
    let forged: &[&[&str]] = &[
        &["X-Forwarded-For: 203.0.113.9"],
        &["X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 203.0.113.10"],
        &["X-Real-IP: 203.0.113.9"],
        &["Forwarded: for=203.0.113.9;host=other.example"],
        &["X-Forwarded-Uri: /free"],
        &["X-Forwarded-Method: PUT"],
        &["X-Forwarded-Method: PUT", "X-Forwarded-Uri: /free", "X-Forwarded-Host: other.example"],
        &["X-Forwarded-Host: other.example"],
        &["X-Original-URI: /free"],
        &["X-Original-URL: /free"],
        &["X-Original-Method: PUT"],
        &["X-Original-Method: PUT", "X-Original-URI: /free"],
        &["X_Original_URI: /free", "X_Forwarded_For: 203.0.113.9"],
        &["Connection: close, X-Forwarded-For, X-Forwarded-Uri, X-Original-URI"],
        &["X-Envoy-Original-Path: /free", "X-Envoy-External-Address: 203.0.113.9"],
        &["X-HTTP-Method-Override: PUT"],
        // To those who speak it, a denial is a 200.
        &["Content-Type: application/grpc"],
        &["Content-Type: application/grpc", "TE: trailers"],
    ];
    exhaust(scene, ALICE, "GET /api/books", &[], 3);
    exhaust(scene, ALICE, "POST /login", &[], 1);
    exhaust(scene, ALICE, "GET /hosted", &["Host: limited.example"], 1);
    let host = "Host: limited.example";
    for lines in forged {
        let with_host = [&[host], *lines].concat();
        for answer in [
            scene.ask(ALICE, "GET /api/books", lines),
            scene.ask(ALICE, "POST /login", lines),
            scene.ask(ALICE, "GET /hosted", &with_host),
        ] {
            // Envoy tells those who speak gRPC in their own words.
            let by_grpc =
                answer.fields.iter().any(|(name, value)| name == "grpc-status" && value != "0");
            assert!([400, 429].contains(&answer.status) || by_grpc, "{lines:?}: {answer:?}");
        }
        assert_eq!(scene.seen(), [], "{lines:?}");
    }
    // Nor can it be made to count for somebody else: Bob has all three.
    exhaust(scene, BOB, "GET /api/books", &[], 3);
}

/// So many pass, and one does not.
fn exhaust(scene: &Scene, caller: Caller, first: &str, lines: &[&str], limit: usize) {
    for _ in 0..limit {
        let answer = scene.ask(caller, first, lines);
        assert_eq!(answer.status, 200, "{first}: {answer:?}");
    }
    let answer = scene.ask(caller, first, lines);
    assert_eq!(answer.status, 429, "{first}: {answer:?}");
    assert_eq!(scene.seen().len(), limit, "{first}");
}

/// The method is that of the request, not that of the question; a body reaches the application.
pub(crate) fn methods_are_told_apart(scene: &Scene) {
    let login = || scene.tell(ALICE, "POST /login", &[], "name=alice");
    for _ in 0..3 {
        assert_eq!(scene.get(ALICE, "/login").status, 200);
    }
    assert_eq!(scene.seen().len(), 3);
    assert_eq!(login().status, 200);
    let seen = scene.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].first.as_str(), seen[0].body.as_str()), ("POST /login", "name=alice"));
    assert_eq!(login().status, 429);
    assert_eq!(scene.seen(), []);
    assert_eq!(scene.get(ALICE, "/login").status, 200);
}

/// Dashpot and the application see the same target, as the caller wrote it.
pub(crate) fn targets_arrive_as_they_are(scene: &Scene) {
    let passes = |target: &str| {
        let answer = scene.get(ALICE, target);
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        let seen: Vec<_> = scene.seen().into_iter().map(|seen| seen.first).collect();
        assert_eq!(seen, [format!("GET {target}")]);
    };
    let stops = |target: &str| {
        let answer = scene.get(ALICE, target);
        assert_eq!(answer.status, 429, "{target}: {answer:?}");
        assert_eq!(scene.seen(), [], "{target}");
    };
    passes("/search?q=a%26b");
    stops("/search?q=a%26b");
    passes("/search?q=a%26c");
    passes("/search?q=a&b");
    passes("/search?q=a%20b&page=..%2F&x=1%2B2");
    stops("/search?page=2&q=a+b");
    passes("/search?q=%C3%A9");
    stops("/search?q=%C3%A9");
    passes("/files/a%2Fb");
    stops("/files/a%2Fb");
    passes("/files/a%2Fc");
    passes("/files/a.b..c");
    stops("/files/a.b..c");
    passes("/files/a%20b%C3%A9?x=%2e%2e/&y=1%2B2");
    stops("/files/a%20b%C3%A9");
    // `deny` is for whoever configures the gateway, not for callers.
    passes("/search?q=z&deny=404");
    stops("/search?q=z&deny=404");
    stops("/search?q=z&deny=nonsense");
    stops("/search?deny=404&q=z");
}

/// However the path is written, it is the same one.
pub(crate) fn no_way_of_writing_leads_around(scene: &Scene) {
    exhaust(scene, ALICE, "GET /api/books", &[], 3);
    for target in [
        "/%61pi/books",
        "//api/books",
        "/api//books",
        "/./api/books",
        "/free/../api/books",
        "/free/%2e%2e/api/books",
        "/api/books/",
        "/api/books?free",
        "/api/books#free",
        "http://127.0.0.1/api/books",
        "http://other.example/api/books",
    ] {
        let answer = scene.get(ALICE, target);
        assert!((400..500).contains(&answer.status), "{target}: {answer:?}");
        assert_eq!(scene.seen(), [], "{target}");
    }
}

/// A denial of the application is not taken for one of ours; one of ours that no wait would help is
/// not taken for a limit.
pub(crate) fn answers_stay_whose_they_are(scene: &Scene) {
    for (target, status) in [("/forbidden", 403), ("/broken", 500), ("/busy", 429)] {
        let answer = scene.get(ALICE, target);
        assert_eq!(answer.status, status, "{target}: {answer:?}");
        assert_eq!(answer.body, "the application's own", "{target}: {answer:?}");
        assert_eq!(answer.field("ratelimit"), None, "{target}: no rule is about it");
    }
    assert_eq!(scene.get(ALICE, "/busy").retry_after(), 77);
    scene.seen();

    let answer = scene.get(BLOCKED, "/free");
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(answer.field("retry-after"), None, "{answer:?}");
    assert_eq!(scene.seen(), []);
}

/// Nobody passes unasked, and everybody is told what the page says.
pub(crate) fn without_dashpot_nobody_passes(mut scene: Scene, status: u16) {
    assert_eq!(scene.get(ALICE, "/free").status, 200);
    scene.seen();
    scene.service.kill();
    assert_eq!(scene.get(ALICE, "/free").status, status);
    assert_eq!(scene.seen(), []);
}

/// What the page says for those who would rather serve than limit. The application's own answers stay.
pub(crate) fn without_dashpot_everybody_passes(mut scene: Scene) {
    exhaust(&scene, ALICE, "GET /api/books", &[], 3);
    scene.service.kill();
    for _ in 0..4 {
        let answer = scene.tell(ALICE, "POST /api/books", &[], "name=alice");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body, "the application's own");
    }
    assert_eq!(scene.get(ALICE, "/broken").status, 500);
    let seen = scene.seen();
    assert_eq!(seen.len(), 5, "each once");
    assert_eq!(seen[0].body, "name=alice");
}

/// If dashpot hangs, the gateway's patience is what the page says, not a minute.
pub(crate) fn a_hung_dashpot_keeps_nobody(scene: &Scene, status: u16) {
    assert_eq!(scene.get(ALICE, "/free").status, 200);
    scene.seen();
    scene.hang();
    let begin = Instant::now();
    assert_eq!(scene.get(ALICE, "/free").status, status);
    assert!(begin.elapsed() < Duration::from_secs(5), "it took {:?}", begin.elapsed());
    assert_eq!(scene.seen(), []);
}

/// What holds for every gateway, as tests of the module it is in: how it tells who may pass, how it denies, and
/// the status when dashpot is gone.
macro_rules! of_every_gateway {
    ($on_allow:expr, $denial:expr, $gone:expr) => {
        #[test]
        fn who_is_over_the_limit_waits() {
            let scene = scene(&crate::page::block(PAGE, "toml"));
            crate::facts::who_is_over_the_limit_waits(&scene, $on_allow, $denial);
        }

        #[test]
        fn forging_buys_nothing() {
            crate::facts::forging_buys_nothing(&scene(RULES));
        }

        #[test]
        fn methods_are_told_apart() {
            crate::facts::methods_are_told_apart(&scene(RULES));
        }

        #[test]
        fn targets_arrive_as_they_are() {
            crate::facts::targets_arrive_as_they_are(&scene(RULES));
        }

        #[test]
        fn no_way_of_writing_leads_around() {
            crate::facts::no_way_of_writing_leads_around(&scene(RULES));
        }

        #[test]
        fn answers_stay_whose_they_are() {
            crate::facts::answers_stay_whose_they_are(&scene(RULES));
        }

        #[test]
        fn without_dashpot_nobody_passes() {
            crate::facts::without_dashpot_nobody_passes(scene(RULES), $gone);
        }
    };
}
pub(crate) use of_every_gateway;
