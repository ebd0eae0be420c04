//! Quotas, policies and traces for property tests, biased towards where mistakes hide.

mod policies;
mod quotas;
mod traces;

pub use policies::{any_window, any_windows, definitions, policy};
pub use quotas::{count, quota, window};
pub use traces::{any_window_trace, cost, mixed_trace, pause, start, trace};

use proptest::test_runner::{Config, FileFailurePersistence};

/// So many cases, unless `PROPTEST_CASES` says otherwise; those that fail are remembered beside the
/// test.
#[must_use]
pub fn cases(cases: u32) -> Config {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let regressions = FileFailurePersistence::WithSource("proptest-regressions");
    Config {
        cases: wanted.unwrap_or(cases),
        failure_persistence: Some(Box::new(regressions)),
        max_shrink_iters: 20_000,
        ..Config::default()
    }
}
