use std::hint;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::{Clock, Timestamp, saturating_nanos};

/// How often the wall clock is looked at.
const LOOK_EVERY: u64 = 1_000_000_000;

/// While slewing, one nanosecond in this many is held back.
const SLEW: u64 = 8;

/// So many nanoseconds, at least, is a course kept to before others go by it without looking at it: longer than processors read their
/// counters ahead.
const SETTLED_AFTER: u64 = 10_000;

/// No offset: time is read by the course it is on.
const STEERED: u64 = u64::MAX;

/// The machine's time: monotonic, and anchored to the wall clock so that windows start when the
/// calendar says.
///
/// It never stands still and never runs backwards. Once a second it is compared with the wall
/// clock: if that was set forward (or the machine slept), the step is taken at once; if it was set
/// back, time runs an eighth slower until the two agree again.
///
/// Between threads it may differ by a fraction of a microsecond, because processors read their
/// counters ahead of what precedes; to hold them back would take as long as a check does.
///
/// Reading it writes nothing that threads share, but for the one reading a second that looks at the
/// wall clock.
#[derive(Debug)]
pub struct SystemClock {
    /// The processor's counter where it can be relied on, else the system's monotonic clock.
    counter: quanta::Clock,
    origin: u64,
    /// Nanoseconds in 2³² ticks of the counter.
    scale: u64,
    course: SharedCourse,
    /// What is to be added to the monotonic clock, while time keeps its pace; else `STEERED`.
    offset: AtomicU64,
    next_look: AtomicU64,
    steering: Mutex<()>,
}

impl SystemClock {
    /// A clock that agrees with the wall clock now.
    #[must_use]
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let course = Course { from: 0, shown: wall_nanos(), ahead: 0 };
        Self {
            origin: counter.raw(),
            scale: counter.delta_as_nanos(0, 1 << 32),
            counter,
            course: SharedCourse::new(course),
            offset: AtomicU64::new(course.offset()),
            next_look: AtomicU64::new(LOOK_EVERY),
            steering: Mutex::new(()),
        }
    }

    #[inline]
    fn monotonic(&self) -> u64 {
        let ticks = self.counter.raw().saturating_sub(self.origin);
        // What is cut off is less than a nanosecond in four seconds, and the wall clock is looked at
        // before that.
        #[expect(clippy::cast_possible_truncation, reason = "it ticks faster than nanoseconds")]
        let nanos = ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64;
        nanos
    }

    /// The time while it is being steered, or due to be.
    #[cold]
    fn now_steered(&self) -> Timestamp {
        if self.monotonic() >= self.next_look.load(Ordering::Relaxed) {
            self.look();
        }
        let (course, monotonic) = self.course.read(|| self.monotonic());
        if course.has_settled(monotonic)
            && let Some(_steering) = self.steering.try_lock()
        {
            // Somebody else may have steered meanwhile.
            let course = self.course.load();
            if course.has_settled(self.monotonic()) {
                self.offset.store(course.offset(), Ordering::Release);
            }
        }
        Timestamp::from_nanos(course.at(monotonic))
    }

    /// Compares with the wall clock; of all threads that notice it is time to, one does.
    #[cold]
    fn look(&self) {
        let Some(_steering) = self.steering.try_lock() else {
            return;
        };
        // In this order: if the thread loses its core in between, the wall is a little behind the
        // monotonic moment, and the clock is slowed for a second rather than hurried.
        let wall = wall_nanos();
        let course = self.steer(|course, monotonic| course.steer(monotonic, wall));
        self.next_look.store(course.from.saturating_add(LOOK_EVERY), Ordering::Relaxed);
    }

    /// Takes another course from this moment on. Callers take turns.
    fn steer(&self, steered: impl FnOnce(Course, u64) -> Course) -> Course {
        self.offset.store(STEERED, Ordering::Release);
        self.course.change(|course| steered(course, self.monotonic()))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let offset = self.offset.load(Ordering::Acquire);
        let monotonic = self.monotonic();
        if offset != STEERED
            && monotonic < self.next_look.load(Ordering::Relaxed)
            && self.offset.load(Ordering::Acquire) == offset
        {
            return Timestamp::from_nanos(offset.wrapping_add(monotonic));
        }
        self.now_steered()
    }
}

/// A course that is read all the time and changed once a second, by a sequence lock: the number is
/// odd while it is being changed, and readers that saw it change start over.
///
/// The moment a reader asks about is read under the lock too. Otherwise a moment after the change
/// could be told by the old course, faster than the new one, and time would seem to run back.
#[derive(Debug)]
struct SharedCourse {
    sequence: AtomicU64,
    from: AtomicU64,
    shown: AtomicU64,
    ahead: AtomicU64,
}

impl SharedCourse {
    fn new(course: Course) -> Self {
        Self {
            sequence: AtomicU64::new(0),
            from: AtomicU64::new(course.from),
            shown: AtomicU64::new(course.shown),
            ahead: AtomicU64::new(course.ahead),
        }
    }

    fn load(&self) -> Course {
        Course {
            from: self.from.load(Ordering::Relaxed),
            shown: self.shown.load(Ordering::Relaxed),
            ahead: self.ahead.load(Ordering::Relaxed),
        }
    }

    /// The course, and a moment read while it was in force.
    #[inline]
    fn read(&self, moment: impl Fn() -> u64) -> (Course, u64) {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let course = self.load();
            in_turn();
            let moment = moment();
            in_turn();
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                return (course, moment);
            }
            hint::spin_loop();
        }
    }

    /// Changes the course. Callers take turns.
    fn change(&self, change: impl FnOnce(Course) -> Course) -> Course {
        self.sequence.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // Else the moment of the change may be one at which others still go by the old course.
        in_turn();
        let course = change(self.load());
        self.from.store(course.from, Ordering::Relaxed);
        self.shown.store(course.shown, Ordering::Relaxed);
        self.ahead.store(course.ahead, Ordering::Relaxed);
        self.sequence.fetch_add(1, Ordering::Release);
        course
    }
}

/// Lets what stands before it in the program be done before what stands behind it begins: a processor may read its counter ahead of
/// both, whatever order memory is accessed in. The system's clock is read in turn, which takes too long for every reading of ours.
#[inline]
fn in_turn() {
    hint::black_box(Instant::now());
}

fn wall_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, saturating_nanos)
}

/// A stretch of time: from the monotonic moment `from`, when the clock showed `shown` and was
/// `ahead` of the wall by that many nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Course {
    from: u64,
    shown: u64,
    ahead: u64,
}

impl Course {
    fn at(&self, monotonic: u64) -> u64 {
        let elapsed = monotonic.saturating_sub(self.from);
        let held_back = self.ahead.min(elapsed / SLEW);
        self.shown.saturating_add(elapsed - held_back)
    }

    /// What is to be added to the monotonic clock when all of what it was ahead has been held back.
    fn offset(&self) -> u64 {
        self.shown.wrapping_sub(self.from).wrapping_sub(self.ahead)
    }

    /// Whether that has been for a while: nobody can have read a moment from before and not be through with it.
    fn has_settled(&self, monotonic: u64) -> bool {
        let elapsed = monotonic.checked_sub(self.from.saturating_add(SETTLED_AFTER));
        elapsed.is_some_and(|elapsed| elapsed / SLEW >= self.ahead)
    }

    fn steer(&self, monotonic: u64, wall: u64) -> Self {
        let shown = self.at(monotonic);
        Self { from: monotonic, shown: shown.max(wall), ahead: shown.saturating_sub(wall) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Nanoseconds by which a reading may precede what stands before it in the program.
    const READ_AHEAD: u64 = 2_000;

    fn started_at(shown: u64) -> Course {
        Course { from: 0, shown, ahead: 0 }
    }

    #[test]
    fn a_forward_step_of_the_wall_clock_is_taken_at_once() {
        let course = started_at(100 * SECOND).steer(SECOND, 500 * SECOND);
        assert_eq!(course.at(SECOND), 500 * SECOND);
        assert_eq!(course.at(3 * SECOND), 502 * SECOND);
    }

    #[test]
    fn a_backward_step_is_slewed_and_caught_up_with() {
        // The wall clock goes back ten seconds and runs on from there.
        let wall = |monotonic: u64| 90 * SECOND + monotonic;
        let mut course = started_at(100 * SECOND);
        let mut last = course.at(0);
        for tick in 1..200 {
            let monotonic = tick * SECOND;
            let shown = course.at(monotonic);
            assert!(shown > last, "never frozen, never backwards");
            assert!(shown >= wall(monotonic), "never behind the wall");
            last = shown;
            course = course.steer(monotonic, wall(monotonic));
        }
        assert_eq!(last, wall(199 * SECOND), "and in the end they agree");
    }

    #[test]
    fn slewing_ends_by_itself_between_two_looks() {
        let course = started_at(100 * SECOND).steer(0, 99 * SECOND);
        assert_eq!(course.at(8 * SECOND), 107 * SECOND);
        assert_eq!(course.at(9 * SECOND), 108 * SECOND);
    }

    #[test]
    fn it_keeps_its_pace_again_some_time_after_it_has_caught_up() {
        let course = started_at(100 * SECOND).steer(0, 99 * SECOND);
        assert!(!course.has_settled(8 * SECOND + SETTLED_AFTER - 1));
        assert!(course.has_settled(8 * SECOND + SETTLED_AFTER));
        for moment in [8 * SECOND, 8 * SECOND + SETTLED_AFTER, 10 * SECOND] {
            assert_eq!(course.at(moment), course.offset().wrapping_add(moment));
        }
    }

    #[test]
    fn a_clock_that_was_steered_adds_one_number_again() {
        let clock = SystemClock::new();
        // A microsecond ahead of the wall, long ago.
        clock.course.change(|course| Course { ahead: 1000, ..course });
        clock.offset.store(STEERED, Ordering::Relaxed);
        while clock.offset.load(Ordering::Relaxed) == STEERED {
            clock.now();
        }
        let monotonic = clock.monotonic();
        let offset = clock.offset.load(Ordering::Relaxed);
        assert_eq!(clock.course.load().at(monotonic), offset.wrapping_add(monotonic));
    }

    #[test]
    fn a_reading_from_before_the_last_look_does_not_run_backwards() {
        let course = started_at(0).steer(5 * SECOND, 5 * SECOND);
        assert_eq!(course.at(4 * SECOND), 5 * SECOND);
    }

    #[test]
    fn the_machine_is_followed() {
        let clock = SystemClock::new();
        let before = wall_nanos();
        let shown = clock.now().as_nanos();
        let off = shown.abs_diff(before);
        assert!(off < 60 * SECOND, "{off} ns off the wall clock");
        assert!(clock.now().as_nanos() >= shown);
    }

    #[test]
    fn a_look_at_the_wall_clock_puts_the_next_one_a_second_off() {
        let clock = SystemClock::new();
        clock.next_look.store(0, Ordering::Relaxed);
        clock.now();
        let next = clock.next_look.load(Ordering::Relaxed);
        assert_eq!(next, clock.course.load().from + LOOK_EVERY);
    }

    #[test]
    fn one_thread_at_a_time_looks() {
        let clock = SystemClock::new();
        let busy = clock.steering.lock();
        clock.next_look.store(0, Ordering::Relaxed);
        clock.now();
        assert_eq!(clock.next_look.load(Ordering::Relaxed), 0);
        drop(busy);
    }

    /// However often the course changes, and to whatever pace, time does not run back in a thread,
    /// and what another thread has seen is ahead by no more than a processor reads ahead.
    #[test]
    fn time_does_not_run_back_while_it_is_steered() {
        let clock = SystemClock::new();
        let latest = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let read = |compares: bool| {
                let mut last = 0;
                for _ in 0..200_000 {
                    let mut seen = 0;
                    if compares {
                        seen = latest.load(Ordering::SeqCst);
                        // What the processor reads ahead of that is none of the clock's doing.
                        in_turn();
                    }
                    let now = clock.now().as_nanos();
                    assert!(now >= last, "{} ns back", last - now);
                    assert!(now + READ_AHEAD >= seen, "{} ns behind", seen - now);
                    last = now;
                    latest.fetch_max(now, Ordering::SeqCst);
                }
            };
            let readers = [true, false, false].map(|compares| scope.spawn(move || read(compares)));
            let mut steered = 0_u64;
            while !readers.iter().all(|reader| reader.is_finished()) {
                // To a pace an eighth slower and back, as if the wall clock were set and set.
                steered += 1;
                let behind = if steered.is_multiple_of(2) { 3600 * SECOND } else { 0 };
                let steering = clock.steering.lock();
                clock.steer(|course, now| course.steer(now, course.at(now) - behind));
                drop(steering);
                // Sometimes long enough for it to settle.
                for _ in 0..steered % 4 {
                    std::thread::yield_now();
                }
            }
        });
    }
}
