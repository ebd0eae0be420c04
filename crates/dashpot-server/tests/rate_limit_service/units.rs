//! Units and counts: what is configured is what is told.

use crate::door::{Status, costing, request};
use crate::scene::{Scene, away_from_border, both};

const UNITS: [(&str, u64); 7] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3600),
    ("day", 86_400),
    ("week", 7 * 86_400),
    ("month", 30 * 86_400),
    ("year", 365 * 86_400),
];

fn each_unit() -> String {
    let one = |(unit, _): &(&str, u64)| {
        format!("  - key: {unit}\n    rate_limit: {{ unit: {unit}, requests_per_unit: 7 }}\n")
    };
    format!("domain: d\ndescriptors:\n{}", UNITS.iter().map(one).collect::<String>())
}

/// Seconds since 1970.
fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

#[test]
fn each_unit_is_told_and_how_long_it_goes_on() {
    both(&each_unit(), &[], |scene| {
        for (unit, seconds) in UNITS {
            scene.holds("d", &[(unit, "a")], 7, &unit.to_uppercase());
            let answer = scene.hit("d", &[(unit, "b")]);
            let reset = answer.status().reset.unwrap();
            assert!((1..=seconds).contains(&reset), "{unit}: {reset}");
            assert_eq!(answer.status().limit().name, "", "{unit}: it has none");
        }
    });
}

/// Windows are those of the clock, in UTC.
#[test]
fn windows_end_by_the_clock() {
    let scene = Scene::start(&each_unit(), &[]);
    for (unit, seconds) in UNITS.into_iter().filter(|(unit, _)| ["hour", "day"].contains(unit)) {
        let before = now();
        let reset = scene.hit("d", &[(unit, "a")]).status().reset.unwrap();
        let (earliest, latest) = (seconds - now() % seconds, seconds - before % seconds);
        assert!((earliest..=latest).contains(&reset), "{unit}: {reset} by {latest}");
    }
}

#[test]
fn a_window_ends_and_all_is_there_again() {
    let yaml = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: second, requests_per_unit: 2 }
";
    both(yaml, &[], |scene| {
        scene.cost("d", &[("k", "")], 2);
        // A second at most, and a busy machine.
        crate::service::until("the next second", crate::client::PATIENCE, || {
            let answer = scene.cost("d", &[("k", "")], 2);
            (!answer.over).then_some(())
        });
    });
}

#[test]
fn zero_never_passes_and_left_out_is_zero() {
    let yaml = "
domain: d
descriptors:
  - key: zero
    rate_limit: { unit: day, requests_per_unit: 0 }
  - key: out
    rate_limit: { unit: day }
";
    both(yaml, &[], |scene| {
        for key in ["zero", "out"] {
            scene.holds("d", &[(key, "a")], 0, "DAY");
            // There is nothing to look at, either.
            scene.cost("d", &[(key, "a")], 0).is_denied(0);
        }
    });
}

#[test]
fn the_largest_count_is_a_count() {
    let yaml = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: year, requests_per_unit: 4294967295 }
";
    both(yaml, &[], |scene| {
        let answer = scene.hit("d", &[("k", "")]);
        answer.passes(u32::MAX - 1);
        assert_eq!(answer.status().limit().count, u32::MAX);
        scene.cost("d", &[("k", "")], u64::from(u32::MAX) - 1).passes(0);
        scene.hit("d", &[("k", "")]).is_denied(0);
    });
}

/// One of several, it neither denies nor is denied.
#[test]
fn unlimited_among_others() {
    let yaml = "
domain: d
descriptors:
  - key: free
    rate_limit: { unlimited: true }
  - key: few
    rate_limit: { unit: day, requests_per_unit: 1 }
";
    both(yaml, &[], |scene| {
        let asked = request("d", &[costing(&[("free", "")], 5), costing(&[("few", "")], 1)]);
        let free = Status { remaining: u32::MAX, ..Status::free() };
        for over in [false, true] {
            let answer = scene.ask(&asked);
            assert_eq!(answer.overs(), [false, over], "{answer:?}");
            assert_eq!(answer.statuses[0], free, "{answer:?}");
        }
        // A look finds room as well.
        assert_eq!(*scene.cost("d", &[("free", "")], 0).status(), free);
    });
}

#[test]
fn a_name_is_told() {
    let yaml = "
domain: d
descriptors:
  - key: k
    rate_limit: { name: the_limit, unit: hour, requests_per_unit: 2 }
";
    both(yaml, &[], |scene| {
        away_from_border(3600, 10);
        for over in [false, false, true] {
            let answer = scene.hit("d", &[("k", "")]);
            assert_eq!(answer.over, over);
            let limit = answer.status().limit();
            assert_eq!((limit.name.as_str(), limit.count), ("the_limit", 2));
            assert!((1..=3600).contains(&answer.status().reset.unwrap()));
        }
    });
}

#[test]
fn a_shadow_is_counted_and_denies_nothing() {
    let yaml = "
domain: d
descriptors:
  - key: shade
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: light
    shadow_mode: false
    rate_limit: { unit: day, requests_per_unit: 5 }
";
    both(yaml, &[], |scene| {
        let asked = request("d", &[costing(&[("shade", "")], 1), costing(&[("light", "")], 1)]);
        for left in [[1, 4], [0, 3], [0, 2], [0, 1], [0, 0]] {
            let answer = scene.ask(&asked);
            assert_eq!(answer.overs(), [false, false], "{answer:?}");
            assert_eq!(answer.left(), left, "{answer:?}");
            assert_eq!(answer.statuses[0].limit().count, 2, "{answer:?}");
        }
        let answer = scene.ask(&asked);
        assert_eq!(answer.overs(), [false, true], "{answer:?}");
        // A look at it, too, is never denied.
        scene.cost("d", &[("shade", "")], 0).passes(0);
        let answer = scene.cost("d", &[("shade", "new")], 3);
        assert!(!answer.status().over, "nor is more than all of it: {answer:?}");
    });
}
