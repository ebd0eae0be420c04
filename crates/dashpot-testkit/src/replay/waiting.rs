use dashpot::{Algorithm, Check, Decision, Store, Timestamp};

use crate::block_on;

use super::Time;

/// If `check` is denied with a known wait: one tick of the clock less is not enough, and the whole wait
/// is. Nothing to see if it passes, if the wait ends beyond the end of time, or under concurrency,
/// which no clock can promise anything about.
///
/// # Errors
/// If the wait is too long or too short.
pub fn waiting_is_exact<S: Store>(
    store: &S,
    time: &impl Time,
    check: &Check<'_, '_>,
) -> Result<(), String> {
    let decide = || -> Result<Decision<'_>, String> {
        block_on(store.decide(&[*check])).map_err(|error| format!("{error:?}"))
    };
    if check.policy.algorithm() == Algorithm::Concurrency {
        return Ok(());
    }
    let denial = decide()?;
    let Some(wait) = denial.retry_after() else {
        return Ok(());
    };
    if denial.is_allowed() || wait.is_zero() {
        return Err(format!("no allowance and no wait: {denial:?}"));
    }
    if wait > Timestamp::MAX.since(denial.at()) {
        return Ok(());
    }

    time.set(denial.at().after(wait - time.tick()));
    let early = decide()?;
    if early.is_allowed() {
        return Err(format!("passed before its time: told {denial:?}, got {early:?}"));
    }
    time.set(denial.at().after(wait));
    let due = decide()?;
    if !due.is_allowed() {
        return Err(format!("waiting was not enough: told {denial:?}, got {due:?}"));
    }
    Ok(())
}
