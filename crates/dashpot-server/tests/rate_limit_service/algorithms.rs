//! `--envoy-algorithm`: another way to count, for all limits of the YAML and for those that come with a request.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::door::{costing, request};
use crate::scene::{Scene, both, refusal};

const YAML: &str = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: day, requests_per_unit: 5 }
";

fn by(algorithm: &str) -> [&str; 2] {
    ["--envoy-algorithm", algorithm]
}

const DAY: u64 = 86_400;

/// What is told of a limit of which one unit is used.
fn reset_after_one(scene: &Scene) -> u64 {
    scene.hit("d", &[("k", "once")]).status().reset.unwrap()
}

#[test]
fn each_allows_its_limit_and_denies_the_next() {
    for algorithm in
        ["fixed-window", "token-bucket", "leaky-bucket", "sliding-log", "sliding-window"]
    {
        both(YAML, &by(algorithm), |scene| {
            let mut own = costing(&[("own", "")], 1);
            own["limit"] = json!({"requestsPerUnit": 5, "unit": "DAY"});
            let own = request("anywhere", &[own]);
            for left in [4, 3, 2, 1, 0] {
                for answer in [scene.hit("d", &[("k", "a")]), scene.ask(&own)] {
                    answer.passes(left);
                    let limit = answer.status().limit();
                    assert_eq!((limit.count, limit.unit.as_str()), (5, "DAY"), "{algorithm}");
                    assert!(answer.status().reset.unwrap() > 0, "{algorithm}");
                }
            }
            for answer in [scene.hit("d", &[("k", "a")]), scene.ask(&own)] {
                answer.is_denied(0);
                assert!(answer.status().reset.unwrap() > 0, "{algorithm}");
            }
            scene.cost("d", &[("k", "a")], 0).is_denied(0);
            scene.cost("d", &[("k", "b")], 6).is_denied(5);
            scene.cost("d", &[("k", "b")], 5).passes(0);
        });
    }
}

/// A unit comes back each fifth of a day, so that is how long it takes to be whole again, and to pass.
#[test]
fn a_bucket_fills_bit_by_bit() {
    for algorithm in ["token-bucket", "leaky-bucket"] {
        both(YAML, &by(algorithm), |scene| {
            let fifth = DAY / 5;
            let reset = reset_after_one(scene);
            assert!((fifth - 60..=fifth).contains(&reset), "{algorithm}: {reset}");
            scene.cost("d", &[("k", "a")], 5).passes(0);
            let reset = scene.hit("d", &[("k", "a")]).status().reset.unwrap();
            assert!((fifth - 60..=fifth).contains(&reset), "{algorithm}: {reset}");
        });
    }
}

/// What was taken comes back a day after it was.
#[test]
fn a_log_is_whole_after_its_window() {
    both(YAML, &by("sliding-log"), |scene| {
        let reset = reset_after_one(scene);
        assert!((DAY - 60..=DAY).contains(&reset), "{reset}");
        scene.cost("d", &[("k", "a")], 5).passes(0);
        let reset = scene.hit("d", &[("k", "a")]).status().reset.unwrap();
        assert!((DAY - 60..=DAY).contains(&reset), "{reset}");
    });
}

/// Whoever asks all the time is let pass by the rate, wherever the seconds of the clock end.
#[test]
fn around_a_border_nothing_passes_twice() {
    let yaml = YAML.replace("unit: day", "unit: second");
    for algorithm in ["token-bucket", "leaky-bucket", "sliding-log"] {
        let scene = Scene::start(&yaml, &by(algorithm));
        let (mut asked, mut passed) = (0_u32, 0);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1900) {
            passed += u32::from(!scene.hit("d", &[("k", "")]).over);
            asked += 1;
        }
        // Five at first and five for each second after, or five in any second; windows would let pass fifteen.
        let seconds = begun.elapsed().as_secs_f64();
        let most = 5.0 + 5.0 * seconds;
        assert!(f64::from(passed) <= most, "{algorithm}: {passed} of {asked} in {seconds} s");
        assert!(passed >= 5 && asked > passed, "{algorithm}: {passed} of {asked}");
    }
}

#[test]
fn the_headers_are_of_the_algorithm() {
    both(YAML, &by("token-bucket"), |scene| {
        let answer = scene.hit("d", &[("k", "a")]);
        assert_eq!(answer.header("ratelimit-policy"), Some(r#""d.k";q=5;w=86400"#));
        let denied = scene.cost("d", &[("k", "a")], 5);
        let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
        assert!((DAY / 5 - 60..=DAY / 5).contains(&wait), "{denied:?}");
    });
}

/// Permits have to be given back, and nobody does that here.
#[test]
fn concurrency_is_refused() {
    let told = refusal(&[("limits.yaml", YAML)], &by("concurrency"));
    assert!(told.contains("--envoy-algorithm") && told.contains("concurrency"), "{told}");
    let told = refusal(&[("limits.yaml", YAML)], &by("guesswork"));
    assert!(told.contains("--envoy-algorithm") && told.contains("guesswork"), "{told}");
}
