//! Whether an answer is the expected one.

use std::fmt::Debug;
use std::time::Duration;

use dashpot::{Decision, Outcome, PolicyStatus};

use crate::Expected;

/// What is wrong with `decision`, if anything.
pub(super) fn difference(expected: &[Expected], decision: &Decision<'_>) -> Option<String> {
    let statuses = decision.statuses();
    if statuses.len() != expected.len() {
        return Some(format!("{} checks got {} answers", expected.len(), statuses.len()));
    }
    let denied = expected.iter().any(|expected| expected.outcome == Outcome::Deny);
    if denied == decision.is_allowed() {
        return Some(format!("expected {expected:#?}, got {decision:#?}"));
    }
    let mut pairs = expected.iter().zip(statuses).enumerate();
    pairs.find_map(|(number, (expected, status))| {
        let field = wrong_field(expected, status)?;
        Some(format!("check {number}, {field}\nexpected {expected:#?}\ngot {status:#?}"))
    })
}

fn wrong_field(expected: &Expected, got: &PolicyStatus<'_>) -> Option<String> {
    let slack = Duration::from_nanos(expected.slack.nanos);
    let wait = |name, expected: Option<Duration>, got: Option<Duration>| {
        let right = match (expected, got) {
            (Some(expected), Some(got)) => {
                (expected..=expected.saturating_add(slack)).contains(&got)
            }
            _ => expected == got,
        };
        unless(right, name, &expected, &got)
    };
    let remaining = expected.remaining.saturating_sub(expected.slack.units)..=expected.remaining;
    same("outcome", expected.outcome, got.outcome())
        .or_else(|| same("never", expected.never, got.is_never()))
        .or_else(|| same("limit", expected.limit, got.limit()))
        .or_else(|| {
            let right = remaining.contains(&got.remaining());
            unless(right, "remaining", &expected.remaining, &got.remaining())
        })
        .or_else(|| wait("reset_after", Some(expected.reset_after), Some(got.reset_after())))
        .or_else(|| wait("retry_after", expected.retry_after, got.retry_after()))
        .or_else(|| wait("available_after", expected.available_after, got.available_after()))
        .or_else(|| wait("delay", Some(expected.delay), Some(got.delay())))
}

fn same<V: Debug + PartialEq>(name: &str, expected: V, got: V) -> Option<String> {
    unless(expected == got, name, &expected, &got)
}

fn unless(right: bool, name: &str, expected: &dyn Debug, got: &dyn Debug) -> Option<String> {
    (!right).then(|| format!("{name}: expected {expected:?}, got {got:?}"))
}

/// Lets denials pass where an allowance was expected, if they are the fault of the slack alone:
/// they say so by a wait no longer than that. Then `expected` is changed to expect them.
pub(super) fn excuse(expected: &mut [Expected], decision: &Decision<'_>) -> bool {
    let mut excused = false;
    for (expected, status) in expected.iter_mut().zip(decision.statuses()) {
        let slack = Duration::from_nanos(expected.slack.nanos);
        let stricter = expected.outcome == Outcome::Allow && status.outcome() == Outcome::Deny;
        let barely = status.retry_after().is_some_and(|wait| wait <= slack);
        if stricter && barely && !slack.is_zero() {
            expected.outcome = Outcome::Deny;
            expected.retry_after = Some(Duration::ZERO);
            excused = true;
        }
    }
    excused
}
