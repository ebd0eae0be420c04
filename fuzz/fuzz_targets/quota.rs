#![no_main]

//! Limits as text.

use dashpot::{Algorithm, Policy, Quota, Window};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<Quota>() {
        Ok(quota) => {
            let told = quota.to_string();
            assert_eq!(told.parse(), Ok(quota), "{told}");
            for algorithm in Algorithm::ALL {
                survives_policy(quota, algorithm);
            }
        }
        Err(error) => {
            // What is wrong is a part of the text, fit to be shown.
            assert!(text.get(error.span()).is_some(), "{error:?}");
            assert!((1..=text.chars().count() + 1).contains(&error.column()), "{error:?}");
            assert!(error.excerpt().starts_with(text), "{error:?}");
            assert!(error.to_string().len() <= 2 * text.len() + 200, "{error:?}");
        }
    }
    if let Ok(window) = text.parse::<Window>() {
        assert_eq!(window.to_string().parse(), Ok(window));
        assert!(!window.length().is_zero());
    }
});

/// Whatever policy it makes, it can be told, made smaller, and asked.
fn survives_policy(quota: Quota, algorithm: Algorithm) {
    let Ok(policy) = Policy::builder("fuzz", quota).algorithm(algorithm).build() else { return };
    assert_eq!(policy.quota(), quota);
    for percent in [0, 1, 50, 100] {
        let part = policy.reduced_to(percent);
        assert!(part.same_counters(&policy), "{quota} at {percent} %");
    }
    let _ = policy.fits_micros();
}
