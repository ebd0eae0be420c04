//! A rate limiter that is exact.
//!
//! ```
//! use dashpot::{Limiter, Quota};
//!
//! let limiter = Limiter::new(Quota::per_second(10).burst(20));
//! let decision = limiter.check("alice");
//! if decision.is_allowed() {
//!     // serve
//! } else {
//!     println!("come back in {:?}", decision.retry_after());
//! }
//! ```
//!
//! A [`Quota`] says how much is allowed (`10/s burst 20`), a [`Policy`] gives it a name and an
//! [`Algorithm`], a [`Store`] keeps what was counted, and a [`Check`] asks. The answer is a
//! [`Decision`]: whether it passes, and for every policy what remains, when it is whole again, and
//! how long to wait. [`Limiter`] is the short way for one policy in memory.
//!
//! # Promises
//!
//! **Consistency.** A decision is linearizable, also one over several policies at once: every cost
//! is taken, or none is. A denied check changes nothing, so a caller that keeps trying loses
//! nothing but time. All policies that denied are named.
//!
//! **Accuracy.** Whole numbers throughout; nothing drifts and nothing is rounded but waits, which
//! are rounded up to the nanosecond. [`retry_after`](PolicyStatus::retry_after) is exact: after that
//! wait the same check passes if nobody else asked meanwhile, and a nanosecond earlier it does not.
//! Rates from one a century to 2⁶⁴ a nanosecond, counts and costs up to 2⁶⁴, waits up to 584 years
//! (longer ones are told as that). If the clock goes back, nothing breaks, and no key has more than
//! before. All this is held to a slow, exact model by property tests.
//!
//! **Cost.** A check is O(1) in the number of keys (a sliding log: O(log L) in its limit) and
//! allocates nothing for up to four checks on known keys (but where a sliding log grows or a calendar
//! window begins). If it is denied, it writes nothing that threads share; but for sliding logs, blocked
//! keys, and more than four checks at once. A policy is fast in the first store it is used with; in a
//! second one, each check looks it up.
//!
//! **Memory.** No more keys than [`max_keys`](MemoryStoreBuilder::max_keys). Keys that are as good as
//! new make room for others, a few at a time; keys that are owed a limit are never forgotten, and
//! newcomers without room are counted together, too strictly rather than too generously. What is
//! remembered can [outlive the process](MemoryStoreBuilder::build_from).
//!
//! **No panic** is reachable through the public interface, whatever the input.
//!
//! # Choosing an algorithm
//!
//! | algorithm | admits at most | remembers per key | fits |
//! |---|---|---|---|
//! | [token bucket](Algorithm::TokenBucket) | B + ⌊Δ/T⌋ in any interval Δ | one number | most APIs: bursts, then a steady rate |
//! | [leaky bucket](Algorithm::LeakyBucket) | the same; with a queue, one each T leaves | one number | feeding something that wants an even flow |
//! | [fixed window](Algorithm::FixedWindow) | L per window, 2L around a boundary | two numbers | quotas per calendar day or month |
//! | [sliding log](Algorithm::SlidingLog) | L in any window, exactly | up to L entries | few and precious: logins, password resets |
//! | [sliding window](Algorithm::SlidingWindow) | about L; 2L − 1 under attack | three numbers | large limits that should not burst at a boundary |
//! | [concurrency](Algorithm::Concurrency) | L at once | one number | slow or heavy work |
//!
//! (L units per window W; T = W/L is the time of one unit; B the burst, L if left out.)
//!
//! A token bucket of "100 per minute" can pass 200 in one unlucky minute: a hundred saved up, and a
//! hundred that come back meanwhile. If that is too much, give it a smaller burst: `100/min burst 10`
//! passes at most 110.
//!
//! A sliding window's estimate takes the last window's count as spread evenly. Real traffic seldom
//! proves it wrong, but somebody who knows the boundaries can: 2L − 1 in a trailing window is the
//! bound. A sliding log has no such gap, and pays for it by remembering each admission; that is why
//! its limit is at most [`SLIDING_LOG_MAX`].
//!
//! # Keys
//!
//! A [`Key`] is what a policy counts by: any bytes, borrowed. A [`KeyBuf`] makes one of several values, which never run into
//! each other.
//!
//! ```
//! use dashpot::{KeyBuf, Limiter, Quota};
//!
//! let logins = Limiter::new(Quota::per_minute(5));
//! let key: KeyBuf = ["203.0.113.7", "alice@example.com"].into_iter().collect();
//! assert!(logins.check(&key).is_allowed());
//! ```
//!
//! # Several limits at once
//!
//! ```
//! use dashpot::{Check, MemoryStore, Policy, Quota};
//!
//! let store = MemoryStore::new();
//! let minute = Policy::new("minute", Quota::per_minute(60))?;
//! let day = Policy::new("day", Quota::per_day(1000))?;
//!
//! let decision = store.decide_now(&[Check::new(&minute, "alice"), Check::new(&day, "alice")]);
//! for denied in decision.denied() {
//!     println!("{} says no", denied.policy().name());
//! }
//! # Ok::<(), dashpot::PolicyError>(())
//! ```
//!
//! Each queue that applies reserves a place, and the longest [delay](Decision::delay) rules.
//!
//! # Charging what it really cost
//!
//! Reserve a guess, settle with the truth. Less gives the rest back; more is charged as debt, which
//! the key pays off before it is allowed again. A reservation that is never settled stays charged.
//!
//! ```
//! use dashpot::{Limiter, Quota};
//!
//! let tokens = Limiter::new(Quota::per_minute(10_000));
//! match tokens.reserve("alice", 2_000) {
//!     Ok(reservation) => {
//!         let used = 812; // what the model says it used
//!         tokens.settle(reservation, used);
//!     }
//!     Err(denied) => println!("come back in {:?}", denied.retry_after()),
//! }
//! ```
//!
//! Over any interval that reaches back to the charge, what was really used stays within the bound
//! of the algorithm, plus debt. In a shorter one the units given back may come on top: who reserves
//! 5 of 5, waits until 4 are back, takes those and then gives the 5 back, may take 5 more at once.
//! A window's credit and debt end with the window.
//!
//! # Waiting
//!
//! [`Limiter::until_ready`] waits until there is enough, in order, on any executor; and says at once
//! if it would be too late. Dropping the future is leaving the line: nothing is charged.
//!
//! # Under stress
//!
//! A [`Gate`] lets so many in at once in this process, and finds out by itself how many if it is told of a latency to keep;
//! others wait in a bounded line or are turned away, by [`Class`]. A [`Factor`] says how much of a limit there is for now, by
//! how a service is doing ([`Vitals`]); [`Policy::reduced_to`] is that part of a policy, on the same counts.
//!
//! # Changing limits
//!
//! What was counted belongs to the policy's name, algorithm, window and zone. A policy of the same
//! name with another count or burst goes on with the same units used; one with another window or
//! algorithm starts fresh. No registration: the definition that comes with a check is the one that
//! counts.
//!
//! # Writing a store
//!
//! A [`Store`] answers all checks of a call at once. What it remembers of a key is a [`Counted`]; a [`KeyState`] judges that by
//! the same algorithms as in memory, and a bucket's [`Rate`] is in lowest terms. It fills a [`PolicyStatus`] with a
//! [`Standing`], and hands out a [`Receipt`] where the decision alone does not say when a check was charged.
//!
//! # Testing your own code
//!
//! [`ManualClock`] stands still until told otherwise; give it to [`MemoryStore::with_clock`].

// What ships does not panic, and cuts no number short.
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

#[cfg(doctest)]
#[doc = include_str!("../../../docs/overload.md")]
struct UnderStress;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct InTheBook;

mod algorithm;
mod check;
mod class;
mod clock;
mod counted;
mod decision;
mod factor;
mod gate;
mod key;
mod limiter;
mod memory;
mod percent;
mod policy;
mod quota;
mod store;
mod waiting;
mod zone;

pub use check::{Check, Cost};
pub use class::Class;
pub use clock::{Alarm, Clock, ManualClock, SystemClock, Timestamp};
pub use counted::{Counted, KeyState, Rate, Unfit};
pub use decision::{Decision, Outcome, PolicyStatus, Receipt, Retry, Standing};
pub use factor::{Band, Factor, FactorSettings, NarrowBand, Vitals};
pub use gate::{Enter, Gate, GateBuilder, GateStatus, Pass, Shed};
pub use key::{Key, KeyBuf};
pub use limiter::{Limiter, Permit};
pub use memory::{MemoryStore, MemoryStoreBuilder, MemoryUsage, StateError, StateKeeper};
pub use percent::{ParsePercentError, Percent};
pub use policy::{
    Algorithm, Consistency, ParseAlgorithmError, ParseConsistencyError, Policy, PolicyBuilder,
    PolicyError, SLIDING_LOG_MAX,
};
pub use quota::{ParseQuotaError, Quota, Window, WindowError};
pub use store::{KeyOperation, Reservation, Store, StoreError};
pub use waiting::NotReady;
pub use zone::{UnknownZone, Zone};
