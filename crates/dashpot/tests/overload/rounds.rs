//! The rule by which a limit adapts, round by round.

use std::time::Duration;

use dashpot::{Class, Gate, GateBuilder, ManualClock, Pass, Percent};

pub(crate) const LATENCY: Duration = Duration::from_millis(250);
pub(crate) const TICK: Duration = Duration::from_millis(100);
pub(crate) const SOON: Duration = Duration::from_millis(50);
pub(crate) const MILLI: Duration = Duration::from_millis(1);

pub(crate) struct Script {
    pub(crate) gate: Gate,
    pub(crate) clock: ManualClock,
}

impl Script {
    fn new(gate: GateBuilder) -> Self {
        let clock = ManualClock::default();
        Self { gate: gate.clock(clock.clone()).build(), clock }
    }

    pub(crate) fn adaptive(limit: u64) -> Self {
        Self::new(Gate::builder(limit).latency(LATENCY))
    }

    pub(crate) fn begin(&self, many: usize) -> Vec<Pass> {
        let enter = |_| self.gate.try_enter(Class::Normal).expect("there is room");
        (0..many).map(enter).collect()
    }

    pub(crate) fn limit(&self) -> u64 {
        self.gate.status().limit
    }

    /// A round in which all begin together: so many answer soon, so many after the latency, so many fail. Says what
    /// the limit is then.
    pub(crate) fn round(&self, good: usize, slow: usize, failing: usize) -> u64 {
        let [good, slow, failing] = [good, slow, failing].map(|many| self.begin(many));
        self.clock.advance(SOON);
        answered(good);
        failed(failing);
        self.clock.advance(LATENCY - SOON + MILLI);
        answered(slow);
        self.clock.advance(MILLI);
        self.touch();
        self.limit()
    }

    /// Somebody comes and goes, and is answered at once.
    pub(crate) fn touch(&self) {
        answered(self.begin(1));
    }
}

pub(crate) fn answered(passes: Vec<Pass>) {
    passes.into_iter().for_each(|mut pass| pass.succeeded());
}

fn failed(passes: Vec<Pass>) {
    passes.into_iter().for_each(|mut pass| pass.failed());
}

#[test]
fn a_tenth_may_be_slow() {
    assert_eq!(Script::adaptive(100).round(90, 10, 0), 101);
    // Of a hundred, ten may be, and six more by chance: twice the root of ten.
    assert_eq!(Script::adaptive(100).round(84, 16, 0), 101);
    assert_eq!(Script::adaptive(100).round(83, 17, 0), 90);
    assert_eq!(Script::adaptive(100).round(0, 100, 0), 90);
}

#[test]
fn one_in_twenty_may_fail() {
    assert_eq!(Script::adaptive(100).round(95, 0, 5), 101);
    // And four by chance: twice the root of five.
    assert_eq!(Script::adaptive(100).round(91, 0, 9), 101);
    assert_eq!(Script::adaptive(100).round(90, 0, 10), 90);
    let lenient = || Script::new(Gate::builder(100).latency(LATENCY).errors(Percent::new(20)));
    assert_eq!(lenient().round(72, 0, 28), 101);
    assert_eq!(lenient().round(71, 0, 29), 90);
    let strict = || Script::new(Gate::builder(100).latency(LATENCY).errors(Percent::default()));
    assert_eq!(strict().round(99, 0, 1), 90);
}

/// Ten are slow and five fail: neither is too many, whatever they are together.
#[test]
fn slowness_and_errors_are_told_apart() {
    assert_eq!(Script::adaptive(100).round(85, 10, 5), 101);
}

/// Exactly the latency is in time.
#[test]
fn in_time_is_in_time() {
    for (late, limit) in [(Duration::ZERO, 101), (Duration::from_nanos(1), 90)] {
        let script = Script::adaptive(100);
        let all = script.begin(100);
        script.clock.advance(LATENCY + late);
        answered(all);
        script.clock.advance(TICK);
        assert_eq!(script.limit(), limit, "{late:?} late");
    }
}

#[test]
fn half_of_it_must_be_in_use() {
    assert_eq!(Script::adaptive(100).round(49, 0, 0), 100);
    assert_eq!(Script::adaptive(100).round(50, 0, 0), 101);
    assert_eq!(Script::adaptive(99).round(49, 0, 0), 99);
    assert_eq!(Script::adaptive(99).round(50, 0, 0), 100);
}

/// A limit falls though it is hardly used, if those who use it are slow.
#[test]
fn slow_is_slow_however_few_they_are() {
    assert_eq!(Script::adaptive(100).round(0, 10, 0), 90);
}

#[test]
fn not_before_the_tick_is_over() {
    let script = Script::adaptive(20);
    answered(script.begin(20));
    script.clock.advance(TICK - MILLI);
    answered(script.begin(20));
    assert_eq!(script.limit(), 20);
    script.clock.advance(MILLI);
    answered(script.begin(1));
    assert_eq!(script.limit(), 21);
}

/// Nine in a tick are too few, and a tenth makes a round of them; after ten ticks nine will do.
#[test]
fn ten_or_ten_ticks() {
    let script = Script::adaptive(10);
    answered(script.begin(9));
    script.clock.advance(5 * TICK);
    assert_eq!(script.limit(), 10);
    answered(script.begin(1));
    script.clock.advance(MILLI);
    answered(script.begin(1));
    assert_eq!(script.limit(), 11, "there were ten");

    let script = Script::adaptive(10);
    answered(script.begin(9));
    script.clock.advance(10 * TICK - MILLI);
    assert_eq!(script.limit(), 10);
    script.clock.advance(2 * MILLI);
    answered(script.begin(1));
    assert_eq!(script.limit(), 11, "ten ticks are over");
}

/// The answer begins, and what comes after it is not looked at; nor is another word.
#[test]
fn what_counts_is_the_first_word() {
    let script = Script::adaptive(20);
    let mut all = script.begin(20);
    script.clock.advance(SOON);
    all.iter_mut().for_each(Pass::succeeded);
    script.clock.advance(LATENCY);
    failed(all);
    script.touch();
    assert_eq!(script.limit(), 21);
}

/// A round is about those who began in it. Who began before, when there were more, is slow for that reason.
#[test]
fn nothing_from_before_a_change_is_held_against_it() {
    let script = Script::adaptive(100);
    let mut before = script.begin(50);
    answered(script.begin(50));
    script.clock.advance(TICK);
    script.touch();
    script.clock.advance(LATENCY + MILLI);
    script.touch();
    assert_eq!(script.limit(), 90);
    // In the next round forty are fast, and fifty of the last one end at last, some with an error.
    let now = script.begin(40);
    script.clock.advance(SOON);
    failed(before.split_off(25));
    answered(before);
    answered(now);
    script.clock.advance(TICK);
    script.touch();
    assert_eq!(script.limit(), 91);
}

#[test]
fn no_lower_than_the_least_and_no_higher_than_the_most() {
    let script = Script::new(Gate::builder(20).latency(LATENCY).min(17).max(22));
    let falling = [0; 4].map(|_| {
        script.clock.advance(TICK);
        script.round(0, 15, 0)
    });
    assert_eq!(falling, [18, 17, 17, 17]);
    let rising = [0; 7].map(|_| {
        script.clock.advance(TICK);
        script.round(17, 0, 0)
    });
    assert_eq!(rising, [18, 19, 20, 21, 22, 22, 22]);
}

#[test]
fn from_one_to_ten_times_as_many_if_nobody_says() {
    let script = Script::adaptive(2);
    for _ in 0..40 {
        let slow = script.begin(1);
        script.clock.advance(10 * TICK);
        answered(slow);
    }
    assert_eq!(script.limit(), 1);
    for _ in 0..40 {
        script.clock.advance(10 * TICK);
        script.round(script.limit() as usize, 0, 0);
    }
    assert_eq!(script.limit(), 20);
}

/// Without a latency to keep, a limit is a limit.
#[test]
fn without_a_latency_nothing_changes() {
    let script = Script::new(Gate::builder(20));
    for _ in 0..10 {
        assert_eq!(script.round(0, 20, 0), 20);
        assert_eq!(script.round(0, 0, 20), 20);
        assert_eq!(script.round(20, 0, 0), 20);
    }
}

/// A round begins with the first who begins, not when nobody was there: or the first of a burst would speak for all of it.
#[test]
fn the_first_after_a_pause_do_not_speak_for_all() {
    let script = Script::adaptive(100);
    for _ in 0..20 {
        script.clock.advance(20 * TICK);
        let (cold, warm) = (script.begin(3), script.begin(47));
        script.clock.advance(SOON);
        answered(warm);
        script.clock.advance(LATENCY);
        answered(cold);
        script.touch();
        assert!(script.limit() >= 100, "{}", script.limit());
    }
}

/// However long it takes: one that is slow or fails is chance, and two are not.
#[test]
fn one_alone_tells_nothing() {
    let script = Script::adaptive(100);
    for _ in 0..20 {
        script.clock.advance(20 * TICK);
        failed(script.begin(1));
        script.clock.advance(20 * TICK);
        answered(script.begin(2));
        assert_eq!(script.limit(), 100);
    }
    for _ in 0..2 {
        script.clock.advance(20 * TICK);
        failed(script.begin(1));
    }
    script.clock.advance(20 * TICK);
    script.touch();
    assert_eq!(script.limit(), 90);
}

/// What is waited for elsewhere is not watched here, whether or not it ends; what comes after is.
#[test]
fn a_pause_is_not_watched() {
    let script = Script::adaptive(20);
    for slow in [false, true] {
        let before = script.limit();
        let mut all = script.begin(10);
        all.iter_mut().for_each(Pass::pause);
        script.clock.advance(20 * TICK);
        answered(script.begin(2));
        script.clock.advance(20 * TICK);
        script.touch();
        let paused = script.limit();
        assert!(paused >= before, "{before} → {paused}");
        all.iter_mut().for_each(Pass::restart);
        script.clock.advance(if slow { LATENCY + MILLI } else { SOON });
        answered(all);
        script.clock.advance(20 * TICK);
        script.touch();
        script.clock.advance(20 * TICK);
        script.touch();
        assert_eq!(script.limit() < paused, slow, "{paused} → {}", script.limit());
    }
}
