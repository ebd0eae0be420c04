//! A limit made up on the spot.

use serde_json::json;

use crate::support::Server;

#[test]
fn the_example_of_the_page_is_answered_as_the_page_says() {
    let server = Server::start(&[]);
    let answer = server.check(&json!({"key": "alice", "limit": "10/s burst 20"})).allowed();
    let policy = json!({"policy": "alice", "outcome": "allow", "limit": 20, "remaining": 19,
        "reset_after": 0.1, "retry_after": null});
    let json = answer.json();
    assert_eq!(json["policies"], json!([policy]), "{answer:?}");
    assert_eq!(json["delay"].as_f64(), Some(0.0), "{answer:?}");
    assert!(json.get("reservation").is_none(), "nobody asked for one: {answer:?}");
    assert!(json.get("degraded").is_none_or(|d| d == false), "{answer:?}");
}

#[test]
fn it_allows_as_many_as_the_limit_says_and_no_more() {
    let server = Server::start(&[]);
    let ask = json!({"key": "alice", "limit": "3/h"});
    for left in [2, 1, 0] {
        assert_eq!(server.check(&ask).allowed().remaining(), left);
    }
    for _ in 0..3 {
        let answer = server.check(&ask).denied("limited");
        let policy = answer.policy(0);
        assert_eq!(policy["outcome"], "deny", "{answer:?}");
        assert_eq!(policy["policy"], "alice", "{answer:?}");
        assert_eq!(policy["remaining"], 0, "{answer:?}");
        assert!(answer.json().get("rule").is_none(), "no rule denied it: {answer:?}");
        // A third of the hour brings one back; that denials push it away would show here.
        assert!((1100.0..=1200.0).contains(&answer.retry_after()), "{answer:?}");
    }
    server.check(&json!({"key": "bob", "limit": "3/h"})).allowed();
}

#[test]
fn cost_zero_only_looks() {
    let server = Server::start(&[]);
    let peek = json!({"key": "alice", "limit": "2/h", "cost": 0});
    assert_eq!(server.check(&peek).allowed().remaining(), 2);
    assert_eq!(server.check(&peek).allowed().remaining(), 2);
    server.check(&json!({"key": "alice", "limit": "2/h", "cost": 2})).allowed();
    assert_eq!(server.check(&peek).allowed().remaining(), 0);
    let json = server.check(&json!({"key": "a", "limit": "2/h", "cost": 0, "reserve": true}));
    assert!(json.json().get("reservation").is_none(), "nothing was taken: {json:?}");
}

#[test]
fn a_cost_is_taken_whole_or_not_at_all() {
    let server = Server::start(&[]);
    let ask = |cost| server.check(&json!({"key": "alice", "limit": "5/h", "cost": cost}));
    assert_eq!(ask(4).allowed().remaining(), 1);
    assert_eq!(ask(2).denied("limited").remaining(), 1);
    assert_eq!(ask(1).allowed().remaining(), 0);
    let never = ask(6).denied("limited");
    assert!(never.policy(0)["retry_after"].is_null(), "no wait would do: {never:?}");
    assert_eq!(never.header("retry-after"), None, "{never:?}");
}

#[test]
fn a_burst_is_the_capacity_and_nothing_on_top() {
    let server = Server::start(&[]);
    let ask = json!({"key": "alice", "limit": "1/h burst 4"});
    for left in [3, 2, 1, 0] {
        assert_eq!(server.check(&ask).allowed().remaining(), left);
    }
    server.check(&ask).denied("limited");
    let one = json!({"key": "bob", "limit": "60/h burst 1"});
    server.check(&one).allowed();
    let wait = server.check(&one).denied("limited").retry_after();
    assert!((50.0..=60.0).contains(&wait), "{wait}");
}

#[test]
fn what_was_used_goes_on_with_another_count_or_burst() {
    let server = Server::start(&[]);
    let used = json!({"key": "alice", "limit": "10/h", "cost": 4});
    server.check(&used).allowed();
    for (limit, left) in [
        ("10/h", 6),
        ("20/h", 16),
        ("10/h burst 30", 26),
        ("5/h", 1),
        ("3/h", 0),
        ("10/60min", 6),
        ("10/3600s", 6),
    ] {
        let peek = json!({"key": "alice", "limit": limit, "cost": 0});
        assert_eq!(server.check(&peek).allowed().remaining(), left, "{limit}");
    }
    for algorithm in ["leaky-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        let ask = |limit: &str, cost: u64| {
            let ask = json!({"key": "w", "limit": limit, "algorithm": algorithm, "cost": cost});
            server.check(&ask).allowed().remaining()
        };
        assert_eq!(ask("10/year", 4), 6, "{algorithm}");
        assert_eq!(ask("15/year", 1), 10, "{algorithm}");
        assert_eq!(ask("5/year", 0), 0, "{algorithm}");
        assert_eq!(ask("10/year", 0), 5, "{algorithm}");
    }
    // A queue is no part of what is counted by either.
    let queued = json!({"key": "q", "limit": "10/h", "algorithm": "leaky-bucket", "queue": 9});
    server.check(&queued).allowed();
    let policed = json!({"key": "q", "limit": "10/h", "algorithm": "leaky-bucket"});
    assert_eq!(server.check(&policed).allowed().remaining(), 8);
    let permits = |limit: &str| {
        server.check(&json!({"key": "p", "limit": limit, "reserve": true})).allowed().remaining()
    };
    assert_eq!(permits("2 concurrent"), 1);
    assert_eq!(permits("9 concurrent"), 7);
}

#[test]
fn another_window_algorithm_or_zone_is_counted_anew() {
    let server = Server::start(&[]);
    server.check(&json!({"key": "alice", "limit": "10/h", "cost": 10})).allowed();
    for other in [
        json!({"key": "alice", "limit": "10/min"}),
        json!({"key": "alice", "limit": "10/2h"}),
        json!({"key": "alice", "limit": "10/h", "algorithm": "sliding-log"}),
        json!({"key": "alice", "limit": "10/h", "algorithm": "sliding-window"}),
        json!({"key": "alice", "limit": "10/h", "algorithm": "leaky-bucket"}),
        json!({"key": "alice", "limit": "10/year", "algorithm": "fixed-window"}),
        json!({"key": "alice", "limit": "10/year", "algorithm": "fixed-window", "zone": "Asia/Tokyo"}),
        json!({"key": "Alice", "limit": "10/h"}),
        json!({"key": "alice ", "limit": "10/h"}),
    ] {
        assert_eq!(server.check(&other).allowed().remaining(), 9, "{other}");
    }
    server.check(&json!({"key": "alice", "limit": "10/h"})).denied("limited");
    server
        .check(&json!({"key": "alice", "limit": "10/h", "algorithm": "token-bucket"}))
        .denied("limited");
}

#[test]
fn a_key_is_any_text_of_up_to_1024_bytes() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let longest = "k".repeat(1024);
    let wide = "é".repeat(512);
    let almost = format!("{}x", "k".repeat(1023));
    for key in [
        "a",
        " ",
        "\0",
        "\u{1}\u{7f}\n\r\t",
        "\"\\",
        "Zoë",
        "日本",
        "👩‍🚀",
        "\u{202e}x",
        "a:b{c}",
        &longest,
        &wide,
        &almost,
    ] {
        let answer = client.check(&json!({"key": key, "limit": "2/h"})).allowed();
        assert_eq!(answer.policy(0)["policy"], key, "it is told as it was said: {answer:?}");
        assert_eq!(answer.remaining(), 1, "nobody else is counted there: {key:?}");
        assert_eq!(client.check(&json!({"key": key, "limit": "2/h"})).remaining(), 0, "{key:?}");
    }
    for key in [format!("{longest}k"), format!("{wide}k"), "é".repeat(513), "k".repeat(30_000)] {
        client.check(&json!({"key": key, "limit": "2/h"})).wrong("key");
    }
    client.check(&json!({"key": "", "limit": "2/h"})).wrong("key");
}
