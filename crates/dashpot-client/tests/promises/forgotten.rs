//! Lanes that may be forgotten, and those that may not.

use dashpot_client::{NotSent, Pace, Patience};

use super::{Scene, well};
use crate::common::{Arrival, answer, get, secs};

/// Whether a lane that was used at the beginning is still known after another wanted its place.
fn is_known(scene: &mut Scene) -> bool {
    scene.ask(get("http://one/"));
    let other = scene.call_at(secs(100), get("http://two/"));
    let mut again = get("http://one/");
    again.extensions_mut().insert(Patience(secs(1)));
    let again = scene.call_at(secs(101), again);
    scene.world.run();
    assert_eq!(scene.of(other).status, Some(200));
    matches!(scene.of(again).not_sent, Some(NotSent::TooLate { .. }))
}

#[test]
fn a_lane_whose_quota_is_used_up_is_not_forgotten() {
    for (reset, is_kept) in [("3600", true), ("50", false)] {
        let handler = move |arrival: &Arrival| match arrival.number {
            0 => answer(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)]),
            _ => answer(200, &[]),
        };
        let mut scene = Scene::new(handler, |builder| builder.most_lanes(1));
        assert_eq!(is_known(&mut scene), is_kept, "{reset}");
    }
}

#[test]
fn a_lane_whose_pace_is_used_up_is_not_forgotten() {
    for (interval, is_kept) in [(3600, true), (50, false)] {
        let mut scene = Scene::new(well, |builder| {
            // One for each call, so that nothing but the lane knows what was counted.
            builder.most_lanes(1).lanes(move |call| {
                let pace = Pace::every(secs(interval)).unwrap();
                if call.host() == "one" { call.lane().pace(&pace) } else { call.lane() }
            })
        });
        assert_eq!(is_known(&mut scene), is_kept, "{interval}");
    }
}

/// Who has no lane of its own waits with others who have none.
#[test]
fn room_is_made_again_and_again() {
    let handler = |arrival: &Arrival| match arrival.uri.path() {
        "/denied" => answer(429, &[("retry-after", "150")]),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| builder.most_lanes(2).attempts(1));
    for round in 0..5 {
        // Both of the round before are idle by then, and one of these is to be told to wait.
        let at = secs(300 * round);
        scene.call_at(at, get(&format!("http://denied{round}/denied")));
        let other = scene.call_at(at + secs(1), get(&format!("http://other{round}/")));
        scene.world.run_until(at + secs(200));
        let other = scene.of(other);
        assert_eq!((other.status, other.over), (Some(200), at + secs(1)), "round {round}");
        assert_eq!(scene.manners.lanes(), 2);
    }
}
