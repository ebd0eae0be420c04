//! Several of them on one Redis, and what they do without it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dashpot_testkit::RedisServer;

use crate::client::{Answer, Client, forward_auth};
use crate::service::{Directory, Service, refusal, until};

/// How long an outage, or its end, may take to be noticed.
const NOTICED: Duration = Duration::from_secs(15);

/// One rule for each thing that can be done without a store. Patient, so that a busy machine is not
/// taken for a server that is down.
fn rules(url: &str) -> String {
    let rule = |name: &str, error: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nmatch = {{ path = '/{name}' }}\nlimits = ['100/day']\n{error}\n"
        )
    };
    format!("[store]\nurl = '{url}'\ndeadline = '2s'\non_error = 'deny'\n")
        + &rule("usual", "")
        + &rule("allow", "on_store_error = 'allow'")
        + &rule("deny", "on_store_error = 'deny'")
        + &rule("local", "on_store_error = 'local'")
}

fn ask(client: &mut Client, path: &str) -> Answer {
    client.check(&format!(r#"{{"request":{{"path":"/{path}"}}}}"#))
}

fn is_degraded(answer: &Answer) -> bool {
    answer.json()["degraded"] == true
}

fn is_up(service: &Service) -> bool {
    service.client().get("/v1/health").json()["up"].as_bool().unwrap()
}

fn until_up(service: &Service, up: bool) {
    until("its health to change", NOTICED, || (is_up(service) == up).then_some(()));
}

#[test]
fn two_share_one_limit_exactly() {
    let redis = RedisServer::start();
    let home = Directory::new();
    let both = [(); 2].map(|()| Service::with_rules(&home, &rules(&redis.url()), &[]));
    both.iter().for_each(|service| until_up(service, true));
    let (allowed, pairs) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let pair =
        r#"{"checks":[{"key":"small","limit":"50/day"},{"key":"large","limit":"1000/day"}]}"#;
    thread::scope(|scope| {
        for service in both.iter().cycle().take(8) {
            scope.spawn(|| {
                let mut client = service.client();
                for _ in 0..40 {
                    for (answer, count) in
                        [(ask(&mut client, "usual"), &allowed), (client.check(pair), &pairs)]
                    {
                        assert!(!is_degraded(&answer), "{answer:?}");
                        count.fetch_add(usize::from(answer.allowed()), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(allowed.into_inner(), 100);
    assert_eq!(pairs.into_inner(), 50);
    let left = both[0].client().check(r#"{"key":"large","limit":"1000/day","cost":0}"#).remaining();
    assert_eq!(left, 950, "denials took nothing");
    until("them to know of each other", NOTICED, || {
        let health = both[0].client().get("/v1/health").json();
        (health["instances"] == 2).then_some(())
    });
    assert!(redis.keys_without_ttl().is_empty());
}

#[test]
fn without_it_every_rule_does_as_it_says() {
    let redis = RedisServer::start();
    let home = Directory::new();
    let service = Service::with_rules(&home, &rules(&redis.url()), &[]);
    until_up(&service, true);
    let mut client = service.client();
    for path in ["usual", "allow", "deny", "local"] {
        let answer = ask(&mut client, path);
        assert!(answer.allowed() && !is_degraded(&answer), "{path}: {answer:?}");
    }
    let store_up = format!("dashpot_store_up{{server=\"{}\"}}", redis.address());
    assert_eq!(service.metric(&store_up), 1.0);

    redis.kill();
    until("the outage to be noticed", NOTICED, || {
        is_degraded(&ask(&mut client, "allow")).then_some(())
    });
    for path in ["usual", "deny"] {
        let answer = ask(&mut client, path);
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
        let body = answer.json();
        assert_eq!(body["outcome"], "deny", "{path}: {body}");
        assert_eq!(body["reason"], "unavailable", "{path}: {body}");
        assert_eq!(body["degraded"], true, "{path}: {body}");
        client.send(forward_auth(&format!("/{path}")));
        assert_eq!(client.expect().status, 429, "never a 5xx for a gateway");
    }
    for _ in 0..120 {
        let answer = ask(&mut client, "allow");
        assert!(answer.allowed() && is_degraded(&answer), "{answer:?}");
    }
    // Alone, it grants all of the limit.
    let granted = (0..120).filter(|_| {
        let answer = ask(&mut client, "local");
        assert!(is_degraded(&answer), "{answer:?}");
        answer.allowed()
    });
    assert_eq!(granted.count(), 100);

    assert_eq!(client.get("/readyz").status, 200, "not unready");
    assert!(!is_up(&service));
    assert_eq!(service.metric(&store_up), 0.0);
    assert!(service.metric(r#"dashpot_rule_degraded_total{rule="allow"}"#) >= 120.0);
    assert!(service.metric(r#"dashpot_rule_degraded_total{rule="deny"}"#) >= 1.0);

    redis.restart();
    until_up(&service, true);
    until("it to be used again", NOTICED, || {
        (!is_degraded(&ask(&mut client, "allow"))).then_some(())
    });
    let answer = ask(&mut client, "deny");
    assert_eq!(answer.remaining(), 99, "it came back empty: {answer:?}");
    assert_eq!(service.metric(&store_up), 1.0);
}

/// One that hangs is worse than one that is gone: callers wait for it, but no longer than they said.
#[test]
fn one_that_hangs_costs_a_deadline_and_then_nothing() {
    let redis = RedisServer::start();
    let home = Directory::new();
    let service = Service::with_rules(&home, &rules(&redis.url()).replace("2s", "200ms"), &[]);
    until_up(&service, true);
    redis.hang();
    let mut client = service.client();
    let begun = std::time::Instant::now();
    for _ in 0..30 {
        let answer = ask(&mut client, "allow");
        assert!(answer.allowed(), "{answer:?}");
    }
    let took = begun.elapsed();
    println!("30 asked in {took:?}");
    assert!(took < Duration::from_secs(4), "{took:?}, where three deadlines are 600 ms");
    assert!(!is_up(&service));
    redis.resume();
    until_up(&service, true);
}

#[test]
fn it_starts_without_it_and_uses_it_when_it_comes() {
    let redis = RedisServer::start();
    redis.kill();
    let home = Directory::new();
    let service = Service::with_rules(&home, &rules(&redis.url()), &[]);
    let mut client = service.client();
    assert_eq!(client.get("/readyz").status, 200);
    assert_eq!(ask(&mut client, "deny").status, 503);
    assert!(is_degraded(&ask(&mut client, "allow")));
    assert!(!is_up(&service));
    redis.restart();
    until_up(&service, true);
    until("it to be used", NOTICED, || (ask(&mut client, "deny").status == 200).then_some(()));
    assert!(!redis.keys().is_empty());
}

#[test]
fn without_a_rule_file_a_flag_says_where() {
    let redis = RedisServer::start();
    let service = Service::start(&["--store", &redis.url()]);
    until_up(&service, true);
    assert!(service.client().check(r#"{"key":"alice","limit":"5/day"}"#).allowed());
    assert_eq!(service.client().get("/v1/health").json()["store"], "redis");
    assert!(!redis.keys().is_empty());
}

/// A password that is right, one that is wrong, and one of a server that is not there.
#[test]
fn a_password_is_told_to_nobody() {
    const RIGHT: &str = "sesame-of-the-cave";
    let redis = RedisServer::with(&["--requirepass", RIGHT]);
    let home = Directory::new();
    let url = |password: &str| format!("redis://:{password}@{}", redis.address());
    for (password, up) in [(RIGHT, true), ("opium-of-the-cave", false), (RIGHT, false)] {
        if password == RIGHT && !up {
            redis.kill();
        }
        let file = home.write("rules.toml", &rules(&url(password)));
        let arguments = ["--config", &file, "--log-level", "trace"];
        let service = Service::start_in(home.path(), &arguments);
        until_up(&service, up);
        let mut client = service.client();
        let mut told: Vec<String> = Vec::new();
        for path in ["usual", "allow", "local"] {
            told.push(format!("{:?}", ask(&mut client, path)));
        }
        for path in ["/v1/health", "/v1/rules", "/metrics", "/v1/keys/top", "/", "/openapi.json"] {
            told.push(format!("{:?}", client.get(path)));
        }
        // What is wrong about the file is told as well, with the line it is in.
        let right = rules(&url(password));
        let one_slash = right.replace("redis://", "redis:/");
        for wrong in [right.replace("url = ", "address = "), one_slash.clone()] {
            home.write("rules.toml", &wrong);
            let reloaded = client.post("/v1/rules/reload", "");
            assert_eq!(reloaded.status, 400, "{reloaded:?}");
            told.push(format!("{reloaded:?}"));
            told.push(format!("{:?}", client.post("/v1/rules/diff", &wrong)));
        }
        // Another password, or place, may or may not be taken. It is not told either.
        home.write("rules.toml", &right.replace(password, &format!("new-{password}")));
        told.push(format!("{:?}", client.post("/v1/rules/reload", "")));
        told.extend([service.stdout(), service.log()]);
        for told in told {
            assert!(!told.contains("of-the-cave"), "{told}");
        }
        // Nor when it cannot start.
        home.write("rules.toml", &one_slash);
        let (code, told) = refusal(home.path(), &["--config", "rules.toml"]);
        assert_eq!(code, Some(2), "{told}");
        assert!(!told.contains("of-the-cave"), "{told}");
        let (code, told) = refusal(home.path(), &["--store", &url(password).replace("//", "/")]);
        assert_eq!(code, Some(2), "{told}");
        assert!(!told.contains("of-the-cave"), "{told}");
    }
}
