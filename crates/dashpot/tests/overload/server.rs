use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A server with so many workers, which all requests share alike: as long as there are no more requests than workers, each takes
/// its service time; n requests take n / workers times as long. So it does `workers / service time` in a second at most, however many
/// it is given, and more at once only makes each slower.
///
/// Moments are nanoseconds.
pub(crate) struct Server {
    workers: u64,
    /// How much longer everything takes just now. Infinite: nothing is ever done.
    slowness: f64,
    now: u64,
    /// What somebody who has always been in has got done by now, in nanoseconds of work.
    done: f64,
    /// How much is done when each ends, and who it is. In halves of a picosecond, which can be put in order.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    /// The time that workers were busy, all added up.
    busy: f64,
}

const GRAINS: f64 = 2048.0;

impl Server {
    pub(crate) fn new(workers: u64) -> Self {
        Self { workers, slowness: 1.0, now: 0, done: 0.0, ends: BinaryHeap::new(), busy: 0.0 }
    }

    pub(crate) fn in_service(&self) -> u64 {
        self.ends.len() as u64
    }

    /// What everybody who is in gets done in a nanosecond.
    fn speed(&self) -> f64 {
        let share = self.workers as f64 / self.in_service().max(self.workers) as f64;
        share / self.slowness
    }

    pub(crate) fn advance(&mut self, now: u64) {
        let passed = (now - self.now) as f64;
        self.busy += passed * self.in_service().min(self.workers) as f64;
        self.done += passed * self.speed();
        self.now = now;
    }

    pub(crate) fn be_slower(&mut self, times: f64) {
        self.slowness = times;
    }

    pub(crate) fn begin(&mut self, who: usize, work: u64) {
        let end = (self.done + work as f64) * GRAINS;
        self.ends.push(Reverse((end as u64, who)));
    }

    /// When the next one is done, if nobody comes until then.
    pub(crate) fn next_end(&self) -> Option<u64> {
        let Reverse((end, _)) = self.ends.peek()?;
        let wait = ((*end as f64 / GRAINS - self.done) / self.speed()).max(0.0);
        wait.is_finite().then(|| self.now + wait.ceil() as u64)
    }

    /// Somebody who is done by now.
    pub(crate) fn take_done(&mut self) -> Option<usize> {
        // A nanosecond that was rounded is not waited for again.
        let done = ((self.done + 0.01) * GRAINS) as u64;
        let Reverse((end, who)) = *self.ends.peek()?;
        (end <= done).then(|| {
            self.ends.pop();
            who
        })
    }

    /// The time that workers were busy since this was asked last, of all they had: 0 to 1.
    pub(crate) fn take_load(&mut self, within: u64) -> f64 {
        std::mem::take(&mut self.busy) / (within * self.workers) as f64
    }
}
