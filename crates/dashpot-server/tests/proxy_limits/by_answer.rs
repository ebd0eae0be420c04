//! Charged by the answer: by its status, or by what the backend says it cost.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::backend::{Backend, Seen};
use crate::proxy::Proxy;

/// Answers as the query says: `status=401`, `tokens=12`.
fn as_told() -> Backend {
    Backend::answering(|seen, stream| {
        let status = told(seen, "status").unwrap_or("200");
        let used = told(seen, "tokens").map(|used| format!("x-tokens-used: {used}\r\n"));
        let used = used.unwrap_or_default();
        write!(stream, "HTTP/1.1 {status} So\r\n{used}content-length: 2\r\n\r\nok")
    })
}

fn told<'a>(seen: &'a Seen, name: &str) -> Option<&'a str> {
    let (_, query) = seen.path().split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

const FAILURES: &str = "[[rule]]\nname = 'login'\nby = ['ip']\nlimits = ['3/day']\n\
                        algorithm = 'sliding-log'\ncharge_on = [401, 403]\n";

#[test]
fn only_failures_count() {
    let backend = as_told();
    let proxy = Proxy::by(&backend, FAILURES);
    assert_eq!(proxy.statuses("/login", &[], 20), [200; 20]);
    assert_eq!(proxy.statuses("/login?status=404", &[], 5), [404; 5]);
    assert_eq!(proxy.statuses("/login?status=500", &[], 5), [500; 5]);
    assert_eq!(proxy.statuses("/login?status=401", &[], 2), [401; 2]);
    assert_eq!(proxy.statuses("/login?status=403", &[], 2), [403, 429]);
    // The right password does not help any more, or guessing on would pay.
    assert_eq!(proxy.statuses("/login", &[], 2), [429, 429]);
    assert_eq!(proxy.caller_from(2).get("/login").status, 200);
}

/// Many at once must not all slip in before the first failure is known.
#[test]
fn guesses_in_flight_count() {
    let backend = Backend::answering(|_, stream| {
        thread::sleep(Duration::from_millis(200));
        stream.write_all(&crate::backend::answer("401 Unauthorized", "no"))
    });
    let proxy = Proxy::by(&backend, FAILURES);
    let mut callers: Vec<_> = (0..30).map(|_| proxy.caller()).collect();
    for caller in &mut callers {
        caller.send(crate::caller::get("/login"));
    }
    let statuses: Vec<_> = callers.iter_mut().map(|caller| caller.answer().status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 3, "{statuses:?}");
    assert_eq!(backend.count(), 3);
}

#[test]
fn who_hangs_up_before_the_answer_does_not_guess_for_free() {
    let backend = Backend::answering(|_, stream| {
        thread::sleep(Duration::from_millis(300));
        stream.write_all(&crate::backend::answer("401 Unauthorized", "no"))
    });
    let proxy = Proxy::by(&backend, FAILURES);
    for nth in 1..=3 {
        let mut caller = proxy.caller();
        caller.send(crate::caller::get("/login"));
        backend.await_count(nth);
        drop(caller);
    }
    assert_eq!(proxy.get("/login").status, 429);
    assert_eq!(backend.count(), 3);
}

/// Our own answers are no answers of the backend's.
#[test]
fn a_backend_that_is_gone_charges_nobody() {
    let backend = Backend::answering(|_, _| Err(std::io::ErrorKind::ConnectionAborted.into()));
    let proxy = Proxy::by(&backend, FAILURES);
    assert_eq!(proxy.statuses("/login", &[], 6), [502; 6]);
    // Unless these count.
    let rules = FAILURES.replace("401, 403", "401, 502");
    let proxy = Proxy::by(&backend, &rules);
    assert_eq!(proxy.statuses("/login", &[], 5), [502, 502, 502, 429, 429]);
}

const TOKENS: &str = "[[rule]]\nname = 'tokens'\nby = ['ip']\nlimits = ['100/year']\ncost = 10\n\
                      settle = 'header:x-tokens-used'\n";

/// What is left: the next request tells it, and takes nothing.
fn left(proxy: &Proxy) -> u64 {
    let answer = proxy.get("/?tokens=0");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.left() + 10
}

#[test]
fn what_the_backend_says_it_cost_is_charged_and_passed_on() {
    let backend = as_told();
    let proxy = Proxy::by(&backend, TOKENS);
    assert_eq!(left(&proxy), 100);
    for (query, expected) in [
        ("tokens=25", 75),
        ("tokens=1", 74),
        ("tokens=0", 74),
        // What nobody says anything about stays charged, and nonsense is nothing.
        ("nothing=0", 64),
        ("tokens=many", 54),
        ("tokens=-5", 44),
        ("status=500&tokens=4", 40),
    ] {
        let answer = proxy.get(&format!("/?{query}"));
        let passed_on = query.split('&').find_map(|pair| pair.strip_prefix("tokens="));
        assert_eq!(answer.header("x-tokens-used"), passed_on, "{query}");
        assert_eq!(left(&proxy), expected, "{query}");
    }
    // What a caller writes is not what the backend says.
    let answer = proxy.caller().ask("GET", "/", &["x-tokens-used: 0"], "");
    assert_eq!(answer.status, 200);
    assert_eq!(left(&proxy), 30);
}

#[test]
fn who_used_more_than_there_was_is_in_debt() {
    let backend = as_told();
    let proxy = Proxy::by(&backend, &TOKENS.replace("100/year", "100/min"));
    assert_eq!(proxy.get("/?tokens=250").status, 200);
    let denied = proxy.get("/");
    // 150 more than there were. To have ten again takes 160, of which there are 100 a minute.
    assert_eq!(denied.status, 429);
    assert!((90..=96).contains(&denied.retry_after()), "{denied:?}");
    assert_eq!(backend.count(), 1);
}
