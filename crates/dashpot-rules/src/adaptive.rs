//! Limits that shrink while the service suffers: what is seen of it, and the factor that follows.

mod cpu;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use dashpot::{Clock, Factor, FactorSettings, Percent, Timestamp, Vitals};
use parking_lot::Mutex;

use cpu::Meter;

/// How many answers it takes to tell how many of them are wrong or slow.
const ENOUGH: u64 = 20;

/// So many ticks that are alike are made up for: more than any factor needs to be whole again.
const TICKS: u64 = 1_000;

/// How a rule adapts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdaptiveSettings {
    pub(crate) factor: FactorSettings,
    pub(crate) latency: Option<Duration>,
    pub(crate) tick: Duration,
}

impl fmt::Display for AdaptiveSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FactorSettings { cpu, errors, floor, down, up, .. } = &self.factor;
        let band = |band: &Option<dashpot::Band>| match band {
            Some(band) => format!("{}..{}", band.healthy, band.stressed),
            None => "off".to_owned(),
        };
        write!(f, "cpu {}, errors {}", band(cpu), band(errors))?;
        if let Some(latency) = self.latency {
            write!(f, ", latency {latency:?}")?;
        }
        write!(f, ", by {down} and {up} to {floor}, every {:?}", self.tick)
    }
}

/// The factor of a rule with `adaptive`.
///
/// There is nobody who ticks: whoever asks for the factor makes up for the ticks that are due. One caller in a tick
/// does that, the others go on with what there is.
pub struct Adaptive {
    clock: Arc<dyn Clock>,
    percent: AtomicU8,
    /// When the next tick is due, in nanoseconds.
    due: AtomicU64,
    /// In nanoseconds; the longest there is, if it is not looked at.
    latency: AtomicU64,
    answers: AtomicU64,
    failed: AtomicU64,
    slow: AtomicU64,
    state: Mutex<State>,
}

struct State {
    factor: Factor,
    tick: Duration,
    cpu: Meter,
    /// What was told, and until when that is believed: the processors, errors, slow ones.
    pushed: [Option<(Percent, Timestamp)>; 3],
    /// How requests fared when it was last known.
    answered: Vitals,
    /// What was found at the last tick.
    last: Vitals,
}

impl Adaptive {
    pub(crate) fn new(settings: AdaptiveSettings, clock: Arc<dyn Clock>) -> Self {
        let AdaptiveSettings { factor, latency, tick } = settings;
        let now = clock.now();
        Self {
            clock,
            percent: AtomicU8::new(100),
            due: AtomicU64::new(now.after(tick).as_nanos()),
            latency: AtomicU64::new(longest(latency)),
            answers: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            state: Mutex::new(State {
                cpu: Meter::start(factor.cpu.is_some()),
                factor: Factor::new(factor),
                tick,
                pushed: [None; 3],
                answered: Vitals::default(),
                last: Vitals::default(),
            }),
        }
    }

    /// Goes on by other settings.
    pub(crate) fn adjust(&self, settings: AdaptiveSettings) {
        let AdaptiveSettings { factor, latency, tick } = settings;
        let mut state = self.state.lock();
        state.cpu = Meter::start(factor.cpu.is_some());
        state.factor.adjust(factor);
        state.tick = tick;
        self.latency.store(longest(latency), Ordering::Relaxed);
        self.due.store(self.clock.now().after(tick).as_nanos(), Ordering::Relaxed);
        self.percent.store(state.factor.percent(), Ordering::Relaxed);
    }

    /// How much of its limits there is, in percent.
    #[must_use]
    pub fn percent(&self) -> u8 {
        self.tick_if_due(self.clock.now());
        self.percent.load(Ordering::Relaxed)
    }

    fn tick_if_due(&self, now: Timestamp) {
        if now.as_nanos() >= self.due.load(Ordering::Relaxed)
            && let Some(mut state) = self.state.try_lock()
        {
            self.catch_up(&mut state, now);
        }
    }

    /// What was found when it was last looked at, pushed or measured.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        self.state.lock().last
    }

    /// What it is told takes the place of what is measured, for so long. What is not said stays as it was.
    pub fn push(&self, vitals: Vitals, lasts: Duration) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        self.catch_up(&mut state, now);
        let until = now.after(lasts);
        for (known, told) in state.pushed.iter_mut().zip([vitals.cpu, vitals.errors, vitals.slow]) {
            *known = told.map(|told| (told, until)).or(*known);
        }
    }

    /// A request begins.
    #[must_use]
    pub fn begin(&self) -> Timestamp {
        self.clock.now()
    }

    /// A request that began then is answered now.
    pub fn answered(&self, began: Timestamp, is_good: bool) {
        let now = self.clock.now();
        // It belongs to the tick that is under way, and not to those that are due.
        self.tick_if_due(now);
        let is_slow = self.is_slow(began, now);
        let count = |counter: &AtomicU64, is_so| {
            if is_so {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        count(&self.answers, true);
        count(&self.failed, !is_good);
        count(&self.slow, is_slow);
    }

    /// A request that began then was given up. Who had waited for too long tells all the same.
    pub fn abandoned(&self, began: Timestamp) {
        if self.is_slow(began, self.clock.now()) {
            self.answered(began, true);
        }
    }

    fn is_slow(&self, began: Timestamp, now: Timestamp) -> bool {
        let took = now.as_nanos().saturating_sub(began.as_nanos());
        took > self.latency.load(Ordering::Relaxed)
    }

    /// Makes up for the ticks that are due.
    fn catch_up(&self, state: &mut State, now: Timestamp) {
        let due = Timestamp::from_nanos(self.due.load(Ordering::Relaxed));
        if now < due {
            return;
        }
        let tick = u64::try_from(state.tick.as_nanos()).unwrap_or(u64::MAX).max(1);
        let ticks = (now.as_nanos() - due.as_nanos()) / tick + 1;
        let cpu = state.cpu.since_last();
        // What was answered came before the time that nobody asked in, so it belongs to the first of them.
        state.answered = self.take_answers(state.answered);
        let mut vitals = Vitals { cpu, ..state.answered };
        let mut number = 0;
        while number < ticks {
            let at =
                Timestamp::from_nanos(due.as_nanos().saturating_add(number.saturating_mul(tick)));
            let found = merge(state.pushed, at, vitals);
            // All ticks are alike until something that was told is not believed any more, but for the first.
            let ends =
                state.pushed.iter().flatten().map(|(_, until)| *until).filter(|until| *until > at);
            let until_then = |end: Timestamp| (end.as_nanos() - at.as_nanos()).div_ceil(tick);
            let alike = ends.min().map_or(ticks - number, until_then).min(ticks - number);
            let alike = if number == 0 { 1 } else { alike };
            for _ in 0..alike.min(TICKS) {
                state.factor.tick(&found);
            }
            state.last = found;
            number += alike;
            vitals = Vitals { cpu, ..Vitals::default() };
        }
        let next = due.as_nanos().saturating_add(tick.saturating_mul(ticks));
        self.due.store(next, Ordering::Relaxed);
        self.percent.store(state.factor.percent(), Ordering::Relaxed);
    }

    /// How requests fared, if there were enough of them; while there are some, as they fared when there were.
    fn take_answers(&self, before: Vitals) -> Vitals {
        let answers = self.answers.load(Ordering::Relaxed);
        if answers < ENOUGH {
            return if answers > 0 { before } else { Vitals::default() };
        }
        let take =
            |counter: &AtomicU64| Some(Percent::of(counter.swap(0, Ordering::Relaxed), answers));
        self.answers.fetch_sub(answers, Ordering::Relaxed);
        let looks = self.latency.load(Ordering::Relaxed) != u64::MAX;
        let slow = take(&self.slow).filter(|_| looks);
        Vitals { cpu: None, errors: take(&self.failed), slow }
    }
}

/// What is pushed and believed at this moment, and else what is measured.
fn merge(pushed: [Option<(Percent, Timestamp)>; 3], at: Timestamp, measured: Vitals) -> Vitals {
    let [cpu, errors, slow] =
        pushed.map(|told| told.filter(|(_, until)| at < *until).map(|(part, _)| part));
    Vitals {
        cpu: cpu.or(measured.cpu),
        errors: errors.or(measured.errors),
        slow: slow.or(measured.slow),
    }
}

fn longest(latency: Option<Duration>) -> u64 {
    latency.map_or(u64::MAX, |latency| u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX))
}

impl fmt::Debug for Adaptive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adaptive").field("percent", &self.percent).finish_non_exhaustive()
    }
}
