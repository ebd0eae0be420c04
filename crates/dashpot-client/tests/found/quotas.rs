//! What was learned of quotas, and was wrong.

use dashpot::Percent;

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
