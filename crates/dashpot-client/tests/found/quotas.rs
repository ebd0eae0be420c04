//! What was learned of quotas, and was wrong.

use dashpot::Percent;
use dashpot_client::Tokens;

use crate::common::{answer, get, millis, secs};
use crate::promises::{HERE, Scene};

/// "All is back in a second" was said of one unit, and was believed of those that were used since.
#[test]
fn what_fills_up_steadily_goes_on_as_fast_as_it_did() {
    let mut scene = Scene::new(
        |_| {
            let told = [("limit", "60"), ("remaining", "59"), ("reset", "1s")];
            let names = told.map(|(name, value)| (format!("x-ratelimit-{name}-requests"), value));
            let named: Vec<_> = names.iter().map(|(name, value)| (&**name, *value)).collect();
            answer(200, &named)
        },
        |builder| builder.patience(secs(600)).thrift(Percent::new(0), secs(0)),
    )
    .way(secs(5));
    scene.call(get(HERE));
    for _ in 0..200 {
        scene.call_at(millis(10_010), get(HERE));
    }
    scene.world.run_until(secs(19));
    // 59 are left, and one more comes each second.
    let sent = scene.times().len() - 1;
    assert!((59..=64).contains(&sent), "{sent}");
}

/// After each window one went to see, though plenty was left when it ended.
#[test]
fn what_was_left_at_a_reset_is_there_after_it() {
    let mut scene = Scene::new(
        |_| {
            answer(
                200,
                &[("ratelimit", "\"d\";r=999;t=1"), ("ratelimit-policy", "\"d\";q=1000;w=1")],
            )
        },
        |builder| builder,
    )
    .way(secs(5));
    scene.call(get(HERE));
    for _ in 0..10 {
        scene.call_at(secs(20), get(HERE));
    }
    scene.world.run();
    assert_eq!(scene.times()[1..], [secs(25); 10]);
}

/// A quota that was told once held up a lane until all its calls were answered, however long that took.
#[test]
fn a_quota_that_is_not_told_of_any_more_is_forgotten() {
    let mut scene = Scene::new(
        |arrival| match arrival.uri.path() {
            "/login" => answer(200, &[("ratelimit", "\"login\";r=0;t=10")]),
            _ => answer(200, &[]),
        },
        |builder| builder,
    )
    .work(|arrival| if arrival.uri.path() == "/poll" { secs(100) } else { millis(100) });
    scene.call(get("http://example.com/poll"));
    scene.call_at(secs(1), get("http://example.com/login"));
    for _ in 0..5 {
        scene.call_at(secs(30), get("http://example.com/other"));
    }
    scene.world.run();
    // One goes to see.
    assert_eq!(scene.times()[2..], [30_000, 30_100, 30_100, 30_100, 30_100].map(millis));
}

/// One absurd reset made all later waits of the lane long.
#[test]
fn an_odd_reset_is_over_with_the_next_answer() {
    let mut scene = Scene::new(
        |arrival| {
            let (left, reset) = match arrival.number {
                0 => ("10", "900000000"),
                1 => ("2", "1"),
                _ => ("0", "1"),
            };
            answer(200, &[("x-ratelimit-remaining", left), ("x-ratelimit-reset", reset)])
        },
        |builder| builder,
    );
    for _ in 0..3 {
        scene.ask(get(HERE));
    }
    let fourth = scene.ask(get(HERE));
    assert!(fourth.over <= millis(1100), "{fourth:?}");
}

/// Microseconds since 1970 were a year to wait.
#[test]
fn no_quota_is_waited_for_longer_than_a_hold() {
    let mut scene = Scene::new(
        |_| {
            let reset = "1800000000000000";
            answer(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)])
        },
        |builder| builder,
    );
    scene.ask(get(HERE));
    let day = secs(86_400);
    let soon = scene.call_at(day / 2, get(HERE));
    let later = scene.call_at(day * 2, get(HERE));
    scene.world.run();
    assert_eq!((scene.of(soon).status, scene.of(later).status), (None, Some(200)));
}

/// Who needed more than was left of what comes at once was forgotten, with all behind it.
#[test]
fn who_needs_more_than_is_left_goes_after_the_reset() {
    let mut scene = Scene::new(
        |_| {
            let policy = "\"t\";q=1000;w=60;qu=\"tokens\"";
            answer(200, &[("ratelimit", "\"t\";r=50;t=10"), ("ratelimit-policy", policy)])
        },
        |builder| builder,
    );
    scene.ask(get(HERE));
    let mut large = get(HERE);
    large.extensions_mut().insert(Tokens(100));
    let outcome = scene.ask(large);
    assert_eq!(outcome.status, Some(200));
    assert!(outcome.over >= secs(10) && outcome.over <= secs(11), "{outcome:?}");
}

/// Who waited for thrift until its patience was over was too late by a hair.
#[test]
fn nobody_is_too_late_for_thrift() {
    let mut scene = Scene::new(
        |_| {
            answer(
                200,
                &[("ratelimit", "\"a\";r=5;t=60"), ("ratelimit-policy", "\"a\";q=100;w=60")],
            )
        },
        |builder| builder.patience(millis(100)),
    );
    scene.ask(get(HERE));
    let second = scene.call(get(HERE));
    scene.world.settle();
    // A machine is never exactly in time.
    scene.world.clock.advance(millis(101));
    scene.world.run();
    assert_eq!(scene.of(second).status, Some(200));
}

/// One who waits for a unit of nothing asked again and again, without end.
#[test]
fn a_limit_of_nothing_is_waited_for_in_peace() {
    let mut scene = Scene::new(
        |arrival| {
            let (limit, left, reset) =
                if arrival.number == 0 { ("60", "0", "60s") } else { ("0", "0", "0s") };
            answer(200, &steady(limit, left, reset))
        },
        |builder| builder,
    );
    for _ in 0..4 {
        let outcome = scene.ask(get(HERE));
        assert_eq!(outcome.status, Some(200), "{outcome:?}");
    }
}

/// Headers of what fills up steadily.
fn steady<'v>(limit: &'v str, left: &'v str, reset: &'v str) -> [(&'static str, &'v str); 3] {
    [
        ("x-ratelimit-limit-requests", limit),
        ("x-ratelimit-remaining-requests", left),
        ("x-ratelimit-reset-requests", reset),
    ]
}

/// A second, said of six milliseconds, was taken for a rate.
#[test]
fn whole_seconds_are_no_rate() {
    let mut scene = Scene::new(
        |arrival| {
            // Then all that it took is back.
            let left = if arrival.number == 0 { "99990" } else { "99999" };
            let (limit, reset) = ("x-ratelimit-limit-tokens", "x-ratelimit-reset-tokens");
            answer(200, &[(limit, "100000"), ("x-ratelimit-remaining-tokens", left), (reset, "1s")])
        },
        |builder| builder,
    )
    .work(|_| secs(15));
    scene.ask(get(HERE));
    let calls = [(); 2].map(|()| {
        let mut large = get(HERE);
        large.extensions_mut().insert(Tokens(60_000));
        scene.call(large)
    });
    scene.world.run();
    let statuses = calls.map(|call| scene.of(call).status);
    assert_eq!(statuses, [Some(200); 2]);
    // The second, when the answer to the first told that there is enough.
    assert_eq!(scene.times()[1..], [15, 30].map(secs));
}

/// A unit in a year, said by mistake, was believed.
#[test]
fn a_steady_quota_is_not_waited_for_longer_than_a_hold_either() {
    let mut scene =
        Scene::new(|_| answer(200, &steady("1", "0", "1800000000000000")), |builder| builder);
    scene.ask(get(HERE));
    let later = scene.call_at(secs(2 * 86_400), get(HERE));
    scene.world.run();
    assert_eq!(scene.of(later).status, Some(200));
}

/// When the one that went to see came back with nothing, all went.
#[test]
fn after_a_look_that_failed_another_one_looks() {
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(
                200,
                &[("ratelimit", "\"a\";r=0;t=10"), ("ratelimit-policy", "\"a\";q=9;w=10")],
            ),
            1 => Err("the cable is cut".into()),
            2 => answer(502, &[]),
            _ => answer(
                200,
                &[("ratelimit", "\"a\";r=8;t=10"), ("ratelimit-policy", "\"a\";q=9;w=10")],
            ),
        },
        |builder| builder.attempts(1),
    )
    .way(millis(100));
    scene.ask(get(HERE));
    scene.calls(6);
    scene.world.run();
    let times = scene.times();
    let looks = &times[1..5];
    assert!(looks.windows(2).all(|two| two[1] - two[0] >= millis(200)), "{times:?}");
    assert_eq!(times[4], times[6], "{times:?}");
}

/// Between two calls, the part of a unit that had come back was lost.
#[test]
fn parts_of_units_are_kept() {
    let mut scene = Scene::new(|_| answer(200, &steady("10", "0", "10s")), |builder| builder)
        .work(|arrival| if arrival.number == 0 { secs(0) } else { secs(1000) });
    scene.ask(get(HERE));
    scene.call_at(millis(1500), get(HERE));
    scene.call_at(millis(1500), get(HERE));
    scene.call_at(millis(1500), get(HERE));
    scene.world.run_until(secs(100));
    assert_eq!(scene.times()[1..], [1500, 2000, 3000].map(millis));
}
