//! Where promises meet.

use dashpot::Quota;
use dashpot_client::{NotSent, Pace};

use super::{HERE, Scene, well};
use crate::common::{Arrival, answer, get, millis, secs};

#[test]
fn who_is_made_again_stands_where_it_stood_before() {
    let handler = |arrival: &Arrival| match arrival.number {
        0 => answer(429, &[("retry-after", "5")]),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| builder.pace(Pace::every(millis(10)).unwrap()));
    scene.calls(4);
    scene.world.run();
    assert_eq!(scene.paths(), ["0", "0", "1", "2", "3"]);
}

#[test]
fn those_far_behind_are_told_before_their_patience_ends() {
    let pace = Pace::every(secs(10)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.pace(pace).patience(secs(15)));
    let calls = scene.calls(4);
    scene.world.run();
    assert_eq!(scene.times(), [0, 10].map(secs));
    for call in &calls[2..] {
        let outcome = scene.of(*call);
        assert!(matches!(outcome.not_sent, Some(NotSent::TooLate { .. })), "{outcome:?}");
        // Those before them might leave; when they have gone instead, it is known.
        assert!(outcome.over <= secs(10), "{outcome:?}");
    }
}

#[test]
fn those_far_behind_go_if_those_before_them_leave_in_time() {
    let pace = Pace::every(secs(10)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.pace(pace).patience(secs(25)));
    let calls = scene.calls(3);
    scene.world.run_until(secs(1));
    scene.world.drop_task(calls[1]);
    scene.world.run();
    assert_eq!(scene.of(calls[2]).over, secs(10));
}

#[test]
fn a_lane_that_was_told_to_wait_uses_nothing_of_the_overall_limit() {
    let handler = |arrival: &Arrival| match (arrival.uri.host(), arrival.number) {
        (Some("one"), 0) => answer(429, &[("retry-after", "30")]),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| builder.overall(Quota::per_second(1)));
    for _ in 0..5 {
        scene.call(get("http://one/"));
    }
    scene.world.settle();
    let others: Vec<usize> = (0..10).map(|_| scene.call(get("http://two/"))).collect();
    scene.world.run();
    let over: Vec<u64> = others.iter().map(|call| scene.of(*call).over.as_secs()).collect();
    assert_eq!(over, (1..=10).collect::<Vec<_>>());
}

#[test]
fn who_is_made_again_is_not_turned_away_by_a_full_line() {
    let handler = |arrival: &Arrival| match arrival.number {
        0 => answer(429, &[("retry-after", "5")]),
        _ => answer(200, &[]),
    };
    for places in [0, 1, 2] {
        let mut scene = Scene::new(handler, |builder| {
            builder.pace(Pace::every(secs(1)).unwrap().queue(places))
        });
        let first = scene.call(get(HERE));
        scene.world.settle();
        for _ in 0..places {
            scene.call(get(HERE));
        }
        scene.world.run();
        let outcome = scene.of(first);
        // It was let in once, and "stands where it stood before".
        assert_eq!((outcome.status, outcome.report.attempts()), (Some(200), 2), "{places} places");
    }
}

#[test]
fn a_lane_of_which_nothing_is_left_is_not_idle() {
    let handler = |arrival: &Arrival| match arrival.number {
        0 => answer(200, &[("ratelimit", "\"a\";r=0;t=100")]),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| builder.most_lanes(2).patience(secs(1000)));
    scene.ask(get("http://busy/"));
    for number in 0..50 {
        scene.ask(get(&format!("http://host{number}/")));
    }
    assert_eq!(scene.world.time(), secs(0));
    assert!(scene.ask(get("http://busy/")).over >= secs(100));
}

#[test]
fn a_lane_with_some_left_is_not_forgotten_for_others() {
    let handler = |arrival: &Arrival| match arrival.number {
        0 => answer(
            200,
            &[("ratelimit", "\"a\";r=2;t=100"), ("ratelimit-policy", "\"a\";q=9;w=100")],
        ),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| builder.most_lanes(2).patience(secs(1000)));
    scene.ask(get("http://busy/"));
    for number in 0..50 {
        scene.ask(get(&format!("http://host{number}/")));
    }
    for _ in 0..3 {
        scene.ask(get("http://busy/"));
    }
    // Two, and then a hundred seconds.
    assert!(scene.world.time() >= secs(100), "{:?}", scene.world.time());
}

#[test]
fn those_who_share_a_lane_keep_to_it() {
    // All lanes are taken by calls that take long; one newcomer calls again and again.
    let pace = Pace::every(secs(10)).unwrap();
    let handler = |_: &Arrival| answer(200, &[]);
    let mut scene =
        Scene::new(handler, |builder| builder.most_lanes(2).pace(pace).patience(secs(1000)))
            .way(secs(200));
    scene.call(get("http://one/"));
    scene.call(get("http://two/"));
    scene.world.settle();
    for _ in 0..3 {
        scene.call(get("http://new/"));
    }
    scene.world.run();
    let arrivals = scene.server.arrivals();
    let new: Vec<_> =
        arrivals.iter().filter(|one| one.uri.host() == Some("new")).map(|one| one.at).collect();
    assert_eq!(new.len(), 3);
    assert!(new.windows(2).all(|pair| pair[1].since(pair[0]) >= secs(10)), "{new:?}");
}

#[test]
fn a_newcomer_without_a_lane_does_not_go_faster_by_getting_one() {
    let pace = Pace::every(secs(60)).unwrap();
    let mut scene =
        Scene::new(well, |builder| builder.most_lanes(1).pace(pace).patience(secs(1000)))
            .way(secs(1));
    scene.call(get("http://one/"));
    let first = scene.call_at(millis(500), get("http://new/"));
    // By now the other lane may have made room.
    let second = scene.call_at(secs(61), get("http://other/"));
    let third = scene.call_at(secs(62), get("http://new/"));
    scene.world.run();
    for call in [first, second, third] {
        assert_eq!(scene.of(call).status, Some(200));
    }
    let arrivals = scene.server.arrivals();
    let new: Vec<_> =
        arrivals.iter().filter(|one| one.uri.host() == Some("new")).map(|one| one.at).collect();
    assert!(new[1].since(new[0]) >= secs(60), "{new:?}");
}

#[test]
fn a_long_answer_of_one_does_not_keep_others_from_going() {
    // No limit of what is at once: who waits for an answer is in nobody's way.
    let mut scene = Scene::new(well, |builder| builder).way(secs(100));
    scene.calls(50);
    scene.world.run();
    assert_eq!(scene.times(), vec![secs(100); 50]);
}

#[test]
fn a_thousand_wait_and_all_go_in_order() {
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(503, &[("retry-after", "3")]),
            _ => answer(200, &[]),
        },
        |builder| builder.pace(Pace::at_most("100/s burst 10".parse().unwrap()).queue(2000)),
    );
    scene.calls(1000);
    scene.world.run();
    let paths: Vec<usize> = scene.paths().iter().map(|path| path.parse().unwrap()).collect();
    let mut firsts = Vec::new();
    for path in paths {
        if !firsts.contains(&path) {
            firsts.push(path);
        }
    }
    assert!(firsts.is_sorted());
    assert_eq!(firsts.len(), 1000);
    assert!(scene.world.time() <= secs(16), "{:?}", scene.world.time());
}

#[test]
fn what_is_said_to_those_who_share_a_lane_counts_when_they_have_one() {
    let handler = |arrival: &Arrival| match arrival.uri.path() {
        "/denied" => answer(429, &[("retry-after", "100")]),
        _ => answer(200, &[]),
    };
    let mut scene =
        Scene::new(handler, |builder| builder.most_lanes(1).attempts(1).patience(secs(1000)))
            .way(secs(5));
    scene.call(get("http://one/"));
    scene.call_at(secs(1), get("http://new/denied"));
    // Nobody else is there any more: the newcomer may have a lane.
    let again = scene.call_at(secs(30), get("http://new/"));
    scene.world.run();
    let over = scene.of(again).over;
    assert!(over >= secs(111 + 10), "{over:?}");
}
