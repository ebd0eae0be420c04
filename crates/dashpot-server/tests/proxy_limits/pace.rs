//! Those who wait in a line, and the pace at which they leave it.

use std::time::{Duration, Instant};

use dashpot_testkit::process::until;

use crate::backend::{Backend, Seen};
use crate::caller::{Caller, PATIENCE, get};
use crate::proxy::Proxy;

/// Clocks of two programs may differ by as much.
const CLOCKS: Duration = Duration::from_millis(2);

/// So many callers, one behind the other: the first leaves at once, to `/0`, the others wait, for `/1` and so on.
#[track_caller]
pub(crate) fn wait_in_line(proxy: &Proxy, backend: &Backend, count: usize) -> Vec<Caller> {
    let already = backend.count();
    let send_next = |nth| {
        let caller = send(proxy, &format!("/{nth}"));
        await_sum(&[proxy], backend, already + nth + 1);
        caller
    };
    (0..count).map(send_next).collect()
}

/// Waits until so many have reached the backend, or wait in line for it.
#[track_caller]
pub(crate) fn await_sum(proxies: &[&Proxy], backend: &Backend, count: usize) {
    until("all to have come, or to wait", PATIENCE, || {
        // In this order: who leaves the line meanwhile is not counted twice.
        let came = backend.count() as f64;
        let waiting: f64 = proxies.iter().map(|proxy| proxy.metric("dashpot_queued")).sum();
        (came + waiting >= count as f64).then_some(())
    });
}

/// One more, on a connection of its own.
pub(crate) fn send(proxy: &Proxy, path: &str) -> Caller {
    let mut caller = proxy.caller();
    caller.send(get(path));
    caller
}

/// Whether requests came to the backend `interval` apart, but for those that may go `undelayed`. `sent` is before
/// the first was sent.
///
/// None may be too early: by when the first was sent at the earliest, it is known when each may leave at the
/// earliest, however busy the machine. That no two are closer than that follows. How late one may be is
/// less certain: four fifths of what it would be late by if it had missed its turn.
#[track_caller]
pub(crate) fn assert_paced(seen: &[Seen], sent: Instant, interval: Duration, undelayed: u32) {
    let first = seen.first().expect("somebody came").at;
    for (nth, seen) in (0_u32..).zip(seen) {
        let turn = interval * nth.saturating_sub(undelayed);
        let (early, late) = (sent + turn - CLOCKS.min(turn), first + turn + interval * 4 / 5);
        let told = seen.at - sent;
        assert!(seen.at >= early, "{} is too early: the {nth}th, after {told:?}", seen.path());
        assert!(seen.at <= late, "{} is too late: the {nth}th, after {told:?}", seen.path());
    }
}
