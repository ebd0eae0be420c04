//! What any store owes its callers, one test per promise.
//!
//! A store's own test file says how to make one and how its time passes:
//!
//! ```
//! use dashpot::ManualClock;
//! use dashpot_testkit::conformance::Subject;
//! use dashpot_testkit::{OracleStore, conformance};
//! use std::time::Duration;
//!
//! struct Slow {
//!     store: OracleStore,
//!     clock: ManualClock,
//! }
//!
//! impl Subject for Slow {
//!     type Store = OracleStore;
//!
//!     fn store(&self) -> &OracleStore {
//!         &self.store
//!     }
//!
//!     async fn advance(&self, by: Duration) {
//!         self.clock.advance(by);
//!     }
//! }
//!
//! fn subject() -> Slow {
//!     let clock = ManualClock::default();
//!     Slow { store: OracleStore::with_clock(clock.clone()), clock }
//! }
//!
//! conformance!(subject());
//! ```
//!
//! Keys are fresh for each test, so one store may serve them all. Windows are a day long, so that
//! a store on real time answers like one on a manual clock; only waiting is tested on a short one,
//! and there only that it is enough: that it is not too long shows under a
//! [replay](crate::replay()).

mod any_window;
mod keys;
mod limits;
mod managing;
mod settling;
mod together;
mod waiting;

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashpot::{Algorithm, Check, Decision, Key, KeyOperation, Policy, Reservation, Store, Window};

use crate::limit;

pub use any_window::*;
pub use keys::*;
pub use limits::*;
pub use managing::*;
pub use settling::*;
pub use together::*;
pub use waiting::*;

/// A store to test, and how its time passes.
pub trait Subject {
    /// The store.
    type Store: Store;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// Lets time pass: by turning a clock, or by sleeping.
    fn advance(&self, by: Duration) -> impl Future<Output = ()>;
}

/// One `#[test]` for each promise, on a subject made anew by the expression. They run under
/// [`block_on`](crate::block_on()), or under any other function that is named after a comma:
/// `conformance!(subject(), on_my_runtime)`.
///
/// Where a subject takes long to make, `conformance!(together: subject(), on_my_runtime)` is one
/// `#[test]` for all promises, on one subject.
#[macro_export]
macro_rules! conformance {
    (together: $subject:expr, $run:path) => {
        $crate::conformance! { @list together $subject, $run }
    };
    ($subject:expr) => {
        $crate::conformance!($subject, $crate::block_on);
    };
    ($subject:expr, $run:path) => {
        $crate::conformance! { @list each $subject, $run }
    };
    (@list $how:ident $subject:expr, $run:path) => {
        $crate::conformance! {
            @$how $subject, $run;
            a_fresh_key_allows_its_limit_then_denies
            a_large_cost_counts_as_many
            a_cost_of_zero_looks_and_changes_nothing
            a_denial_changes_nothing
            more_than_the_limit_is_never_granted
            a_count_of_zero_grants_nothing
            no_limit_grants_everything
            a_queue_tells_how_long_to_wait
            no_checks_at_all_are_allowed
            one_denial_charges_nobody
            every_denier_is_named
            checks_on_one_key_are_merged
            merged_checks_are_denied_together
            unused_units_come_back
            what_was_used_stays_charged
            a_debt_is_charged_whether_it_fits_or_not
            a_permit_comes_back_whatever_was_used
            what_is_undone_is_as_if_it_had_not_been
            a_peek_tells_how_a_key_stands
            a_reset_forgets_what_was_counted
            a_block_denies_until_it_is_lifted
            a_block_ends_by_itself
            a_block_outlives_a_reset
            keys_are_any_bytes
            keys_do_not_mix
            names_do_not_mix
            algorithms_and_windows_do_not_mix
            a_changed_count_carries_the_units_used
            a_changed_window_carries_the_time
            any_window_does_not_mix_with_one
            several_windows_in_one_call_are_merged
            what_is_given_back_is_the_time_it_took
            waiting_as_told_is_enough
        }
    };
    (@each $subject:expr, $run:path; $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                let subject = $subject;
                $run($crate::conformance::$promise(&subject));
            }
        )*
    };
    (@together $subject:expr, $run:path; $($promise:ident)*) => {
        #[test]
        fn every_promise_is_kept() {
            let subject = $subject;
            $run(async { $($crate::conformance::$promise(&subject).await;)* });
        }
    };
}

/// Five a day, or five at once.
fn five(algorithm: Algorithm) -> Policy {
    several("five", algorithm, 5)
}

fn several(name: &str, algorithm: Algorithm, count: u64) -> Policy {
    limit(name, algorithm, count, Window::DAY)
}

/// A key that nobody has used before, not even another process.
fn fresh_key() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("conformance-{}-{number}", std::process::id()).into_bytes()
}

async fn decide<'p>(subject: &impl Subject, checks: &[Check<'p, '_>]) -> Decision<'p> {
    let decision = subject.store().decide(checks).await.expect("the store answers");
    assert_eq!(decision.statuses().len(), checks.len(), "one answer for each check");
    decision
}

async fn ask<'p>(
    subject: &impl Subject,
    policy: &'p Policy,
    key: &[u8],
    cost: u64,
) -> Decision<'p> {
    decide(subject, &[Check::new(policy, key).cost(cost)]).await
}

async fn manage<'p>(
    subject: &impl Subject,
    policy: &'p Policy,
    key: &[u8],
    operation: KeyOperation,
) -> Decision<'p> {
    let managed = subject.store().manage(policy, Key::new(key), operation).await;
    managed.expect("the store answers")
}

async fn remaining(subject: &impl Subject, policy: &Policy, key: &[u8]) -> u64 {
    let peek = manage(subject, policy, key, KeyOperation::Peek).await;
    peek.statuses()[0].remaining()
}

/// Takes units that must be there.
async fn reserve(subject: &impl Subject, policy: &Policy, key: &[u8], cost: u64) -> Reservation {
    let check = Check::new(policy, key).cost(cost);
    let decision = decide(subject, &[check]).await;
    check.reservation(&decision).unwrap_or_else(|| panic!("{policy}: {decision:?}"))
}

async fn settle(subject: &impl Subject, reservation: Reservation, used: u64) {
    let settled = subject.store().settle(&reservation, used.into()).await;
    settled.expect("the store answers");
}
