//! What is made again, and what is not.

use std::collections::BTreeSet;
use std::io;

use bytes::Bytes;
use dashpot::Quota;
use dashpot_client::{BoxError, GaveUp, Mishap};
use http::{HeaderName, Method, Request, StatusCode};
use http_body_util::Full;

use super::{Answer, HERE, Scene};
use crate::common::{Arrival, answer, get, post, secs};

fn call(method: &str) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri(HERE).body(Full::default()).unwrap()
}

/// Fails once with this status and these headers.
fn fails(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
) -> impl FnMut(&Arrival) -> Answer {
    move |arrival| match arrival.number {
        0 => answer(status, headers),
        _ => answer(200, &[]),
    }
}

/// How often such a call is made, if it fails once with this.
fn times(request: Request<Full<Bytes>>, status: u16) -> u32 {
    Scene::new(fails(status, &[]), |builder| builder).ask(request).report.attempts()
}

#[test]
fn idempotent_methods_are_made_again_and_others_are_not() {
    for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
        assert_eq!(times(call(method), 503), 2, "{method}");
    }
    for method in ["POST", "PATCH", "CONNECT", "LOCK"] {
        let mut scene = Scene::new(fails(503, &[]), |builder| builder);
        let outcome = scene.ask(call(method));
        assert_eq!(outcome.report.attempts(), 1, "{method}");
        assert_eq!(outcome.report.gave_up(), Some(GaveUp::Unsafe), "{method}");
        assert_eq!(outcome.status, Some(503));
    }
}

#[test]
fn these_answers_are_worth_another_attempt_and_no_others() {
    for status in 200..600 {
        let expected = match status {
            408 | 429 | 500 | 502 | 503 | 504 | 529 => 2,
            _ => 1,
        };
        assert_eq!(times(get(HERE), status), expected, "{status}");
    }
}

#[test]
fn which_answers_are_worth_it_can_be_said() {
    let only = |status: u16| {
        Scene::new(fails(status, &[]), |builder| builder.retry_statuses([StatusCode::CONFLICT]))
            .ask(get(HERE))
    };
    assert_eq!(only(409).report.attempts(), 2);
    assert_eq!(only(503).report.attempts(), 1);
    assert_eq!(only(503).report.gave_up(), None);
}

#[test]
fn a_429_is_a_denial_even_if_it_is_not_worth_another_attempt() {
    let mut scene =
        Scene::new(fails(429, &[("retry-after", "9")]), |builder| builder.retry_statuses([]));
    assert_eq!(scene.ask(get(HERE)).status, Some(429));
    assert!(scene.ask(get(HERE)).over >= secs(9));
}

#[test]
fn a_post_is_not_made_again_after_a_429_unless_it_is_said_to_do_no_harm() {
    let mut scene = Scene::new(fails(429, &[("retry-after", "1")]), |builder| {
        builder.may_repeat(|call| call.uri.path() == "/v1/messages")
    });
    let outcome = scene.ask(post("http://example.com/v1/payments", "x"));
    assert_eq!(outcome.report.gave_up(), Some(GaveUp::Unsafe));
    let mut scene = Scene::new(fails(429, &[("retry-after", "1")]), |builder| {
        builder.may_repeat(|call| call.uri.path() == "/v1/messages")
    });
    let outcome = scene.ask(post("http://example.com/v1/messages", "x"));
    assert_eq!((outcome.status, outcome.report.attempts()), (Some(200), 2));
    let bodies: Vec<Bytes> = scene.server.arrivals().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies, ["x", "x"]);
}

/// The keys that arrived.
fn keys(scene: &Scene, name: &str) -> Vec<Option<String>> {
    let key = |one: &Arrival| one.headers.get(name).map(|key| key.to_str().unwrap().to_owned());
    scene.server.arrivals().iter().map(key).collect()
}

#[test]
fn a_key_is_the_same_for_all_attempts_and_another_for_each_call() {
    let handler = |arrival: &Arrival| answer([503, 503, 200][arrival.number % 3], &[]);
    let mut scene = Scene::new(handler, |builder| {
        builder.attach_idempotency_keys().retry_floor(Quota::per_second(1000))
    });
    for _ in 0..50 {
        assert_eq!(scene.ask(post(HERE, "x")).report.attempts(), 3);
    }
    let keys = keys(&scene, "idempotency-key");
    for attempts in keys.chunks(3) {
        assert!(attempts[0].is_some());
        assert!(attempts.iter().all(|key| *key == attempts[0]), "{attempts:?}");
    }
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 50);
}

#[test]
fn a_key_that_is_there_is_kept_and_enough() {
    for attach in [false, true] {
        let mut scene = Scene::new(fails(503, &[]), |builder| match attach {
            true => builder.attach_idempotency_keys(),
            false => builder,
        });
        let mut request = post(HERE, "x");
        request.headers_mut().insert("idempotency-key", "mine".parse().unwrap());
        assert_eq!(scene.ask(request).report.attempts(), 2);
        assert_eq!(keys(&scene, "idempotency-key"), vec![Some("mine".to_owned()); 2]);
    }
}

#[test]
fn idempotent_calls_are_given_no_key() {
    let mut scene = Scene::new(fails(503, &[]), |builder| builder.attach_idempotency_keys());
    scene.ask(get(HERE));
    scene.ask(call("PUT"));
    assert_eq!(keys(&scene, "idempotency-key"), [None, None, None]);
}

#[test]
fn a_key_may_be_called_otherwise() {
    let name = HeaderName::from_static("x-request-key");
    let build = || {
        let name = name.clone();
        Scene::new(fails(503, &[]), |builder| {
            builder.idempotency_header(name).attach_idempotency_keys()
        })
    };
    let mut scene = build();
    assert_eq!(scene.ask(post(HERE, "x")).report.attempts(), 2);
    let keys_seen = keys(&scene, "x-request-key");
    assert!(keys_seen[0].is_some() && keys_seen[0] == keys_seen[1], "{keys_seen:?}");
    assert_eq!(keys(&scene, "idempotency-key"), [None, None]);
    // By its usual name it means nothing then.
    let mut scene = Scene::new(fails(503, &[]), |builder| builder.idempotency_header(name));
    let mut request = post(HERE, "x");
    request.headers_mut().insert("idempotency-key", "mine".parse().unwrap());
    assert_eq!(scene.ask(request).report.gave_up(), Some(GaveUp::Unsafe));
}

#[test]
fn the_server_may_say_whether_there_is_a_point() {
    for name in ["x-should-retry", "stripe-should-retry"] {
        let told = |status: u16, value: &'static str, request| {
            let name: &'static str = name;
            let mut scene = Scene::new(
                move |arrival| match arrival.number {
                    0 => answer(status, &[(name, value)]),
                    _ => answer(200, &[]),
                },
                |builder| builder,
            );
            let report = scene.ask(request).report;
            (report.attempts(), report.gave_up())
        };
        assert_eq!(told(503, "false", get(HERE)), (1, Some(GaveUp::Told)), "{name}");
        assert_eq!(told(400, "true", get(HERE)), (2, None), "{name}");
        assert_eq!(told(503, "perhaps", get(HERE)), (2, None), "{name}");
        // That there is a point does not mean that it does no harm.
        assert_eq!(told(503, "true", post(HERE, "x")), (1, Some(GaveUp::Unsafe)), "{name}");
    }
}

/// Breaks once with such an error.
fn breaks(error: fn() -> BoxError) -> impl FnMut(&Arrival) -> Answer {
    move |arrival| match arrival.number {
        0 => Err(error()),
        _ => answer(200, &[]),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it did not work")]
struct Wrapped(#[source] io::Error);

fn refused() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionRefused).into()
}

fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

#[test]
fn what_could_not_connect_was_not_sent_and_is_made_again_whatever_it_does() {
    let wrapped = || Wrapped(io::ErrorKind::ConnectionRefused.into()).into();
    for error in [refused as fn() -> BoxError, wrapped] {
        let mut scene = Scene::new(breaks(error), |builder| builder);
        let outcome = scene.ask(post(HERE, "x"));
        assert_eq!((outcome.status, outcome.report.attempts()), (Some(200), 2));
    }
}

#[test]
fn of_what_broke_otherwise_nobody_knows() {
    let mut scene = Scene::new(breaks(reset), |builder| builder);
    assert_eq!(scene.ask(get(HERE)).status, Some(200));
    let mut scene = Scene::new(breaks(reset), |builder| builder);
    let outcome = scene.ask(post(HERE, "x"));
    assert_eq!((outcome.status, outcome.not_sent), (None, None));
    assert_eq!(outcome.report.gave_up(), Some(GaveUp::Unsafe));
    assert_eq!(outcome.report.attempts(), 1);
}

#[test]
fn somebody_else_may_judge_errors() {
    for (mishap, method, attempts) in [
        (Mishap::Unsent, Method::POST, 2),
        (Mishap::Unsent, Method::GET, 2),
        (Mishap::Unknown, Method::POST, 1),
        (Mishap::Unknown, Method::GET, 2),
        (Mishap::Lasting, Method::POST, 1),
        (Mishap::Lasting, Method::GET, 1),
    ] {
        // Whatever it would mean by itself.
        for error in [reset as fn() -> BoxError, refused] {
            let mut scene = Scene::new(breaks(error), |builder| {
                builder.judge_errors(move |error| {
                    assert!(error.is::<io::Error>(), "{error} is not what the client said");
                    mishap
                })
            });
            let outcome = scene.ask(call(method.as_str()));
            assert_eq!(outcome.report.attempts(), attempts, "{mishap:?} {method}");
            assert_eq!(outcome.error.is_some(), attempts == 1, "{mishap:?} {method}");
        }
    }
}

#[test]
fn what_is_worth_it_is_made_as_often_as_it_may_be() {
    for most in [1, 2, 3, 4, 7] {
        let mut scene = Scene::new(|_| answer(503, &[]), |builder| builder.attempts(most));
        let outcome = scene.ask(get(HERE));
        assert_eq!(outcome.report.attempts(), most);
        assert_eq!(outcome.status, Some(503));
        assert_eq!(outcome.report.gave_up(), Some(GaveUp::Attempts));
    }
    let mut scene = Scene::new(|_| Err(reset()), |builder| builder);
    let outcome = scene.ask(get(HERE));
    assert_eq!((outcome.report.attempts(), outcome.status), (4, None));
    assert_eq!(outcome.report.gave_up(), Some(GaveUp::Attempts));
}
