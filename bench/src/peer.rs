//! The seam between the work and those who do it.

use std::time::Duration;

use crate::peers::{
    Capped, DashMapBuckets, Dashpot, Governor, Limitador, Limits, Nothing, Sketch, Throttlecrab,
};

/// A keyed rate limiter, set up once and then asked by any number of threads.
pub(crate) trait Peer: Sync + Sized {
    fn new(setup: &Setup) -> Self;

    /// Takes one unit, if there is one. A `&String` because governor looks up by nothing else.
    #[allow(clippy::ptr_arg)]
    fn check(&self, key: &String) -> bool;

    /// What its manual tells its user to call now and then to be rid of idle keys.
    fn housekeep(&self) {}

    /// What it tells of itself.
    fn usage(&self) -> Usage {
        Usage::UNTOLD
    }
}

/// What a limiter is set up for.
pub(crate) struct Setup {
    pub(crate) rate: Rate,
    /// How many keys will come. Only the sketch, which cannot grow, makes use of it.
    pub(crate) keys: usize,
    /// Whether keys go idle and are to be swept.
    pub(crate) sweeping: bool,
}

/// A limiter's account of itself; what it does not tell is not a number.
pub(crate) struct Usage {
    pub(crate) keys: f64,
    /// Idle keys that made room for others.
    pub(crate) reclaimed: f64,
    /// Keys that found no room.
    pub(crate) overflowed: f64,
    /// Keys moved by growth.
    pub(crate) moved: f64,
}

impl Usage {
    pub(crate) const UNTOLD: Self =
        Self { keys: f64::NAN, reclaimed: f64::NAN, overflowed: f64::NAN, moved: f64::NAN };
}

/// `count` per `window`, in terms that every peer understands exactly.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) count: u32,
    pub(crate) window: Duration,
    pub(crate) burst: u32,
}

impl Rate {
    pub(crate) const fn new(count: u32, window_secs: u64, burst: u32) -> Self {
        Self { count, window: Duration::from_secs(window_secs), burst }
    }

    /// Denies from the third check on. Not a burst of 1, which throttlecrab does not enforce: see
    /// the over-admission table.
    pub(crate) const STRICT: Self = Self::new(1, 3600, 2);

    /// Denies nothing, and still no key goes idle while `keys` of them are being inserted.
    pub(crate) const fn ample(keys: usize) -> Self {
        if keys > 10_000 { Self::new(1, 60, 10_000) } else { Self::new(100, 1, 100_000_000) }
    }

    /// The time of one unit.
    pub(crate) fn unit(self) -> Duration {
        self.window / self.count
    }
}

/// Something to do with a peer that is known by its name.
pub(crate) trait Job {
    fn run<P: Peer>(self) -> Vec<f64>;
}

/// Those whose time is taken; a check of limitador's is too slow to be asked of by the million.
pub(crate) const TIMED: [&str; 6] =
    ["dashpot", "governor", "dashmap", "throttlecrab", "limitador", "sketch"];

/// Those who are compared, dashpot first.
pub(crate) const PEERS: [&str; 5] = ["dashpot", "governor", "dashmap", "throttlecrab", "sketch"];

/// Does the job with the peer of this name.
pub(crate) fn with(name: &str, job: impl Job) -> Vec<f64> {
    match name {
        "dashpot" => job.run::<Dashpot>(),
        "capped" => job.run::<Capped>(),
        "one limit" => job.run::<Limits<1>>(),
        "three limits" => job.run::<Limits<3>>(),
        "governor" => job.run::<Governor>(),
        "dashmap" => job.run::<DashMapBuckets>(),
        "limitador" => job.run::<Limitador>(),
        "throttlecrab" => job.run::<Throttlecrab>(),
        "sketch" => job.run::<Sketch>(),
        "nothing" => job.run::<Nothing>(),
        _ => panic!("there is no peer `{name}`"),
    }
}
