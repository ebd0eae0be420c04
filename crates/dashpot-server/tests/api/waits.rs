//! Waiting as long as it says is enough, waiting less is not.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Server, pass};

/// Uses a limit up, and holds the wait to its word. Whoever answers late proves nothing, so what was
/// too early is judged only if the answer was back in time.
fn holds(limit: &str, more: &Value) {
    let server = Server::start(&[]);
    let mut client = server.client();
    let mut ask = json!({"key": "alice", "limit": limit});
    ask.as_object_mut().unwrap().append(more.clone().as_object_mut().unwrap());
    let (asked, wait) = loop {
        let asked = Instant::now();
        let answer = client.check(&ask);
        if answer.status == 429 {
            break (asked, answer.denied("limited").retry_after());
        }
        answer.allowed();
    };
    let answered = Instant::now();
    assert!(wait > 0.0, "{limit}");
    let wait = Duration::from_secs_f64(wait);
    while asked.elapsed() + Duration::from_millis(2) < wait {
        let early = client.check(&ask);
        if asked.elapsed() < wait {
            early.denied("limited");
        } else if early.status == 200 {
            // It was late, and took what had come back: that was enough.
            return;
        }
        pass(0.02);
    }
    let rest = (answered + wait).saturating_duration_since(Instant::now());
    pass(rest.as_secs_f64() + 0.000_1);
    client.check(&ask).allowed();
}

#[test]
fn of_a_token_bucket() {
    holds("2/600ms", &json!({}));
}

#[test]
fn of_a_burst() {
    holds("3/900ms burst 1", &json!({}));
}

#[test]
fn of_a_cost() {
    holds("4/800ms", &json!({"cost": 3}));
}

#[test]
fn of_a_queue() {
    holds("1/200ms", &json!({"algorithm": "leaky-bucket", "queue": 1}));
}

#[test]
fn of_a_fixed_window() {
    holds("2/500ms", &json!({"algorithm": "fixed-window"}));
}

#[test]
fn of_a_sliding_log() {
    holds("2/500ms", &json!({"algorithm": "sliding-log"}));
}

#[test]
fn of_a_sliding_window() {
    holds("3/400ms", &json!({"algorithm": "sliding-window"}));
}

#[test]
fn retry_after_is_whole_seconds_rounded_up_and_never_0() {
    let server = Server::start(&[]);
    for (limit, least, most) in
        [("1/50ms", 1, 1), ("1/1500ms", 1, 2), ("1/10s", 1, 10), ("1/59s", 30, 59)]
    {
        let mut client = server.client();
        let ask = json!({"key": "alice", "limit": limit});
        let mut answer = client.check(&ask);
        for _ in 0..1000 {
            if answer.status == 429 {
                break;
            }
            answer = client.check(&ask);
        }
        let answer = answer.denied("limited");
        let told: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        let exact = answer.retry_after();
        assert!((least..=most).contains(&told), "{answer:?}");
        assert!(told as f64 >= exact && (told as f64) < exact + 1.0, "{answer:?}");
    }
}
