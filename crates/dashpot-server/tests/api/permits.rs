//! Permits of `concurrency`.

use serde_json::{Value, json};

use crate::support::{Answer, Server, until};

fn take(server: &Server) -> Answer {
    server.check(&json!({"key": "a", "limit": "2 concurrent", "reserve": true}))
}

#[test]
fn are_not_handed_out_without_a_reservation() {
    let server = Server::by("[[rule]]\nname = 'c'\nlimits = ['2 concurrent']");
    for ask in [
        json!({"key": "a", "limit": "2 concurrent"}),
        json!({"key": "a", "limit": "2 concurrent", "algorithm": "concurrency", "reserve": false}),
        json!({"checks": [{"key": "b", "limit": "5/h"}, {"key": "a", "limit": "2 concurrent"}]}),
        json!({"request": {"path": "/"}}),
    ] {
        let answer = server.check(&ask).wrong("reserve");
        assert!(answer.text().contains("settle"), "it says what to do: {answer:?}");
    }
    let b = json!({"key": "b", "limit": "5/h", "cost": 0});
    assert_eq!(server.check(&b).allowed().remaining(), 5);
    // Who only looks takes nothing that would have to come back.
    let peek = json!({"key": "a", "limit": "2 concurrent", "cost": 0});
    assert_eq!(server.check(&peek).allowed().remaining(), 2);
}

#[test]
fn are_given_back_by_settling_whatever_was_used() {
    let server = Server::start(&[]);
    for used in [0, 1, 7] {
        let first = take(&server).allowed();
        assert_eq!(first.remaining(), 1);
        let second = take(&server).allowed();
        assert_eq!(second.remaining(), 0);
        let denied = take(&server).denied("limited");
        assert!(denied.policy(0)["retry_after"].is_null(), "nobody knows: {denied:?}");
        assert_eq!(denied.header("retry-after"), None, "{denied:?}");
        server.settle(&first.reservation(), used).is(200);
        let third = take(&server).allowed();
        for answer in [second, third] {
            server.settle(&answer.reservation(), used).is(200);
        }
        server.settle(&first.reservation(), used).problem(409);
    }
    assert_eq!(take(&server).allowed().remaining(), 1, "no more than were taken came back");
}

#[test]
fn come_back_when_nobody_settles() {
    let server = Server::start(&["--reservation-ttl", "1s"]);
    let both = json!({"checks": [{"key": "a", "limit": "2 concurrent", "cost": 2},
        {"key": "a", "limit": "5/h"}], "reserve": true});
    let token = server.check(&both).allowed().reservation();
    take(&server).denied("limited");
    let peek = json!({"key": "a", "limit": "2 concurrent", "cost": 0});
    until("permits that lapse", || server.check(&peek).allowed().remaining() == 2);
    server.settle(&token, 0).problem(410);
    assert_eq!(server.check(&peek).allowed().remaining(), 2, "given back once");
    let hour = json!({"key": "a", "limit": "5/h", "cost": 0});
    assert_eq!(server.check(&hour).allowed().remaining(), 4, "everything else stays charged");
}

#[test]
fn of_a_rule_are_settled_with_the_rest() {
    let server = Server::by(
        "[[rule]]\nname = 'c'\nby = ['user']\nlimits = ['1 concurrent']\n\
         [[rule]]\nname = 'h'\nby = ['user']\nlimits = ['5/h']",
    );
    let ask = json!({"request": {"path": "/", "user": "alice"}, "reserve": true});
    let answer = server.check(&ask).allowed();
    let denied = server.check(&ask).denied("limited");
    assert_eq!(denied.json()["rule"], "c", "{denied:?}");
    server.settle(&answer.reservation(), 1).is(200);
    let answer = server.check(&ask).allowed();
    let hour: &Value = &answer.policy(1)["remaining"];
    assert_eq!(*hour, 3, "the denial took none: {answer:?}");
}

#[test]
fn are_taken_several_at_once() {
    let server = Server::start(&[]);
    let take = |cost: u64| {
        server.check(&json!({"key": "a", "limit": "5 concurrent", "cost": cost, "reserve": true}))
    };
    let token = take(4).allowed().reservation();
    take(2).denied("limited");
    take(1).allowed();
    take(1).denied("limited");
    server.settle(&token, 4).is(200);
    assert_eq!(take(4).allowed().remaining(), 0);
}

#[test]
fn that_were_reset_do_not_come_back_twice() {
    let server = Server::start(&[]);
    let token = take(&server).allowed().reservation();
    let key = json!({"key": "a", "limit": "2 concurrent"});
    assert_eq!(server.post("/v1/keys/reset", &key).is(200).remaining(), 2);
    server.settle(&token, 1);
    take(&server).allowed();
    take(&server).allowed();
    take(&server).denied("limited");
}

/// Nobody tells a gateway's request from the next when it is over, so permits are given back at once; what a rule counts beside them
/// is not.
#[test]
fn come_back_from_gateways_without_the_rates_beside_them() {
    let server = Server::by("[[rule]]\nname = 'c'\nlimits = ['3/h', '2 concurrent']");
    let ask = || {
        let headers = [("x-forwarded-method", "GET"), ("x-forwarded-uri", "/")];
        server.client().ask("GET", "/v1/forward-auth", &headers, b"").status
    };
    assert_eq!([ask(), ask(), ask(), ask()], [200, 200, 200, 429]);
}

/// Settled with something, a rule's permit comes back and what it counts beside that stays; with nothing, both come back.
#[test]
fn are_settled_apart_from_the_rates_beside_them() {
    let server = Server::by("[[rule]]\nname = 'c'\nlimits = ['3/h', '2 concurrent']");
    let ask = json!({"request": {"path": "/"}, "reserve": true});
    for (used, left) in [(1, [2, 2]), (0, [2, 2]), (7, [1, 2])] {
        let taken = server.check(&ask).allowed();
        server.settle(&taken.reservation(), used).is(200);
        let look = server.check(&json!({"request": {"path": "/"}, "cost": 0})).allowed();
        let now = [0, 1].map(|policy| look.policy(policy)["remaining"].as_u64().unwrap());
        assert_eq!(now, left, "settled with {used}: {look:?}");
    }
}
