//! Those who wait for their turn in queues, in the order they came.
//!
//! A queue's place is a span of the store's time: from when those before have gone until the next may go. Who leaves
//! gives its span to those behind it, one by one, as long as they stand right behind each other; where somebody stands between
//! whom this process does not know (a queue on Redis has places in other processes), that ends, and the rest stays unused.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dashpot::{Check, Cost, Key, Policy, PolicyStatus, Reservation, Store, Timestamp};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::layer::Shared;
use crate::settle::settle;

/// What stores may round a moment by, in nanoseconds.
const ROUNDING: u64 = 2_000;

/// How long those are waited for who are first and do not go, though they could.
const COURTESY: Duration = Duration::from_millis(10);

/// All lines of a layer.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Who waits, first come first, by policy and key.
    lines: HashMap<Vec<u8>, VecDeque<u64>>,
    waiters: HashMap<u64, Waiter>,
    /// The number of the next who comes.
    next: u64,
}

/// Somebody who waits.
#[derive(Debug)]
struct Waiter {
    /// Mostly one; a request may wait in several lines, and goes when the last lets it.
    places: Vec<Place>,
    waker: Waker,
}

/// A place in a line.
#[derive(Debug)]
struct Place {
    line: Vec<u8>,
    departs: Instant,
    /// When it is over, in the store's nanoseconds.
    ends: u64,
    /// How long it is.
    nanos: u64,
    taken: Reservation,
}

impl Waiter {
    fn departs(&self) -> Option<Instant> {
        self.places.iter().map(|place| place.departs).max()
    }

    fn place(&mut self, line: &[u8]) -> Option<&mut Place> {
        self.places.iter_mut().find(|place| place.line == line)
    }
}

impl Lines {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Stands in line for all these, as the store decided at a moment. `None` if there is nothing to wait for.
    pub(crate) fn join<'p>(
        &mut self,
        at: Timestamp,
        queued: impl Iterator<Item = (Check<'p, 'p>, &'p PolicyStatus<'p>, Reservation)>,
    ) -> Option<u64> {
        let now = Instant::now();
        let number = self.next;
        let mut places = Vec::new();
        for (check, status, taken) in queued {
            let line = name(check.policy, check.key);
            let ends = at.as_nanos().saturating_add(nanos(status.reset_after()));
            let departs = now + status.delay();
            // Mostly the last; but others may have been told at the same time.
            let behind = |known: &u64| {
                let known = self.waiters.get(known).and_then(|known| {
                    known.places.iter().find(|place| place.line == line).map(|place| place.ends)
                });
                known.is_some_and(|known| known > ends)
            };
            let line_now = self.lines.entry(line.clone()).or_default();
            let index =
                line_now.iter().rposition(|known| !behind(known)).map_or(0, |last| last + 1);
            line_now.insert(index, number);
            places.push(Place { line, departs, ends, nanos: span(&check), taken });
        }
        if places.is_empty() {
            return None;
        }
        self.next += 1;
        self.waiters.insert(number, Waiter { places, waker: Waker::noop().clone() });
        Some(number)
    }

    /// Goes, if it is time; else is woken when to look again. Tells when it will be.
    fn poll_depart(&mut self, number: u64, context: &Context<'_>) -> Option<Instant> {
        let now = Instant::now();
        let waiter = self.waiters.get_mut(&number)?;
        waiter.waker.clone_from(context.waker());
        let departs = waiter.departs()?;
        if departs > now {
            return Some(departs);
        }
        // Timers are coarse: those who are due at once go in their order.
        let lines: Vec<Vec<u8>> = waiter.places.iter().map(|place| place.line.clone()).collect();
        for line in &lines {
            let ahead = self.lines.get(line).into_iter().flatten();
            for known in ahead.take_while(|known| **known != number) {
                let Some(known) = self.waiters.get(known) else { continue };
                let is_due = |theirs: Instant| theirs <= now && now < theirs + COURTESY;
                if known.departs().is_some_and(is_due) {
                    known.waker.wake_by_ref();
                    return Some(now + COURTESY);
                }
            }
        }
        self.waiters.remove(&number);
        for line in lines {
            self.step_out(&line, number);
        }
        None
    }

    /// Takes somebody out of a line, and wakes who is next: its time is to be looked at anew. Tells where it stood.
    fn step_out(&mut self, line: &[u8], number: u64) -> Option<usize> {
        let all = self.lines.get_mut(line)?;
        let index = all.iter().position(|known| *known == number)?;
        all.remove(index);
        if let Some(next) = all.get(index).and_then(|next| self.waiters.get(next)) {
            next.waker.wake_by_ref();
        }
        if all.is_empty() {
            self.lines.remove(line);
        }
        Some(index)
    }

    /// Leaves before its time: those behind close up. Tells what is to be given back to the store, and when that would be
    /// over, if it is the end of the line.
    fn leave(&mut self, number: u64) -> Vec<(Reservation, u64)> {
        let Some(waiter) = self.waiters.remove(&number) else { return Vec::new() };
        let mut freed = Vec::new();
        for place in waiter.places {
            let Some(index) = self.step_out(&place.line, number) else { continue };
            let mut end = place.ends;
            let (mut all_closed_up, mut is_behind_such) = (true, false);
            for behind in self.lines.get(&place.line).into_iter().flatten().skip(index) {
                let Some(waiter) = self.waiters.get_mut(behind) else { continue };
                let is_in_several = waiter.places.len() > 1;
                let Some(theirs) = waiter.place(&place.line) else { continue };
                let begins = theirs.ends.saturating_sub(theirs.nanos);
                if begins.abs_diff(end) > ROUNDING {
                    all_closed_up = false;
                    break;
                }
                end = theirs.ends;
                theirs.ends = theirs.ends.saturating_sub(place.nanos);
                theirs.departs -= Duration::from_nanos(place.nanos);
                // The others are woken by whom they stand behind, when that one goes; but who waits elsewhere, too, may stay.
                if is_in_several || is_behind_such {
                    waiter.waker.wake_by_ref();
                }
                is_behind_such = is_in_several;
            }
            if all_closed_up {
                freed.push((place.taken, end));
            }
        }
        freed
    }
}

/// What a line is known by.
fn name(policy: &Policy, key: Key<'_>) -> Vec<u8> {
    let mut name = policy.name().as_bytes().to_vec();
    name.push(0);
    name.extend_from_slice(key.as_bytes());
    name
}

/// How long a check's place in a queue is. Rounded down, so that nobody goes too early.
fn span(check: &Check<'_, '_>) -> u64 {
    let Some(rate) = check.policy.rate() else { return 0 };
    let nanos = check.policy.grains(check.cost.units()) / u128::from(rate.units.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits for its turn. Who drops it leaves the line.
pub(crate) struct Turn<St: Store + 'static> {
    number: u64,
    shared: Arc<Shared<St>>,
    timer: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

impl<St: Store + 'static> Turn<St> {
    pub(crate) const fn new(number: u64, shared: Arc<Shared<St>>) -> Self {
        Self { number, shared, timer: None, is_over: false }
    }
}

impl<St: Store + 'static> Future for Turn<St> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            let Some(departs) = this.shared.lines.lock().poll_depart(this.number, context) else {
                this.is_over = true;
                return Poll::Ready(());
            };
            let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(departs)));
            if timer.deadline() != departs {
                timer.as_mut().reset(departs);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl<St: Store + 'static> Drop for Turn<St> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // Held until it is given back: who comes meanwhile must not be told of a place that moves.
        let mut lines = self.shared.lines.lock();
        for (taken, end) in lines.leave(self.number) {
            // Somebody else may stand behind, who asked at another door.
            let is_last = queue_ends(&self.shared.store, &taken)
                .is_some_and(|ends| ends.abs_diff(end) <= ROUNDING);
            if is_last {
                // All of it: its time has not come.
                settle(&self.shared, taken, false, Cost::PEEK);
            }
        }
    }
}

/// Whether somebody may wait in the queue that this was taken of: here, or at another instance of a store far away.
pub(crate) fn is_waited_for(lines: &Lines, store: &impl Store, taken: &Reservation) -> bool {
    let own = lines.lines.get(&name(taken.policy(), taken.key()));
    own.is_some_and(|line| !line.is_empty()) || queue_ends(store, taken).is_none()
}

/// When all who stand in a queue will have gone, in the store's nanoseconds. A store far away is not asked: what others take
/// meanwhile is not known here.
fn queue_ends(store: &impl Store, taken: &Reservation) -> Option<u64> {
    let look = [Check::new(taken.policy(), taken.key()).cost(Cost::PEEK)];
    let found = store.decide_at_once(&look)?.ok()?;
    let status = found.statuses().first()?;
    Some(found.at().as_nanos().saturating_add(nanos(status.reset_after())))
}
