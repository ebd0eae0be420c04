//! Manners in the making.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dashpot::{Algorithm, Clock, MemoryStore, Percent, Policy, Quota, SystemClock};
use http::{HeaderName, StatusCode};

use super::{Manners, Settings, Shared};
use crate::chance::Chance;
use crate::lanes::Lanes;
use crate::learned::Thrift;
use crate::safety::Mishap;
use crate::{Call, Lane, Pace};

/// What is worth another attempt: a timeout, and what may pass. 529 is how some say that they are overloaded.
const STATUSES: [u16; 7] = [408, 429, 500, 502, 503, 504, 529];

/// [`Manners`] in the making.
#[must_use]
pub struct MannersBuilder {
    settings: Settings,
    clock: Arc<dyn Clock>,
    lanes: usize,
    backoff: (Duration, Duration),
    seed: Option<u64>,
}

impl MannersBuilder {
    pub(super) fn new() -> Self {
        let statuses = STATUSES.iter().filter_map(|status| StatusCode::from_u16(*status).ok());
        let settings = Settings {
            route: Box::new(|call| call.lane()),
            repeat: Box::new(|_| false),
            judge: None,
            pace: Pace::default(),
            overall: Vec::new(),
            patience: Duration::from_secs(120),
            attempts: 4,
            statuses: statuses.collect(),
            share: Percent::new(20),
            floor: None,
            longest: Duration::from_secs(86_400),
            thrift: Thrift { below: Percent::new(10), at_most: Duration::from_secs(1) },
            key: HeaderName::from_static("idempotency-key"),
            attaches_key: false,
            replay: 64 * 1024,
        };
        let backoff = (Duration::from_millis(500), Duration::from_secs(30));
        let clock = Arc::new(SystemClock::new());
        let builder = Self { settings, clock, lanes: 10_000, backoff, seed: None };
        builder.retry_floor(Quota::per_minute(10))
    }

    /// Which lane a call takes: one for each server, if left out. See [`Lane`].
    pub fn lanes(mut self, route: impl Fn(&Call<'_>) -> Lane + Send + Sync + 'static) -> Self {
        self.settings.route = Box::new(route);
        self
    }

    /// How fast calls of a lane may go that has no pace of its own: as fast as the server allows, if left out.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.settings.pace = pace;
        self
    }

    /// How fast calls of all lanes together may go. Several such limits count together; how many calls may be on their way
    /// at once is for each lane to say.
    pub fn overall(mut self, quota: Quota) -> Self {
        self.settings.overall.extend(Pace::at_most(quota).policies);
        self
    }

    /// How long a call may wait and be made again: two minutes, if left out, since most limits are by the minute. No attempt
    /// begins later than that, and who would have to wait longer is told at once. How long one attempt may take is for the
    /// client within to say.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// How often a call is made at the most: 4 times, if left out.
    pub fn attempts(mut self, most: u32) -> Self {
        self.settings.attempts = most.max(1);
        self
    }

    /// How long to wait after failures if the server does not say: at random, up to `base` after the first, twice as long after
    /// each further one, and never longer than `cap`. Half a second and 30 seconds, if left out.
    pub fn backoff(mut self, base: Duration, cap: Duration) -> Self {
        self.backoff = (base, cap);
        self
    }

    /// Which answers are worth another attempt: 408, 429, 500, 502, 503, 504 and 529, if left out.
    pub fn retry_statuses(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.settings.statuses = statuses.into_iter().collect();
        self
    }

    /// What becomes of calls that failed without an answer. If left out, under the layer it was
    /// [not sent](Mishap::Unsent) if the connection was refused, and else [unknown](Mishap::Unknown); with reqwest it is unknown, or
    /// [lasting](Mishap::Lasting) if it could not be built, was redirected without end, or another middleware failed. A service
    /// within that follows redirects should have one that says unknown: who refused may not be who was asked first.
    pub fn judge_errors(
        mut self,
        judge: impl Fn(&(dyn Error + 'static)) -> Mishap + Send + Sync + 'static,
    ) -> Self {
        self.settings.judge = Some(Box::new(judge));
        self
    }

    /// How many calls of a lane may be made again: 20 % of them, if left out. Attempts beyond the first count, and what is
    /// not used is kept for up to a hundred of them.
    pub fn retry_share(mut self, share: Percent) -> Self {
        self.settings.share = share;
        self
    }

    /// How many may be made again however few calls a lane has: 10 in a minute, if left out. With `0/min` there are none but
    /// the [share](Self::retry_share), and so it is with a limit of what is at once.
    pub fn retry_floor(mut self, quota: Quota) -> Self {
        let floor = Policy::builder("retries", quota).algorithm(Algorithm::TokenBucket).build();
        self.settings.floor = floor.ok();
        self
    }

    /// The longest wait that is believed, of `Retry-After` or until a reset: a day, if left out. After that, one call goes to
    /// see.
    pub fn longest_hold(mut self, longest: Duration) -> Self {
        self.settings.longest = longest;
        self
    }

    /// When less than this part is left of a server's quota, calls are spread over the time until there is more, but none
    /// waits longer than `at_most` for it: 10 % and a second, if left out. With `0 %` they go on until nothing is left, and
    /// with `100 %` they are spread from the beginning.
    pub fn thrift(mut self, below: Percent, at_most: Duration) -> Self {
        self.settings.thrift = Thrift { below, at_most };
        self
    }

    /// Gives each call whose method is not idempotent a random `Idempotency-Key`, the same for all its attempts, and makes it
    /// again if it failed. Only for servers that look at it: another would do it twice.
    pub fn attach_idempotency_keys(mut self) -> Self {
        self.settings.attaches_key = true;
        self
    }

    /// Which calls may be made again besides those with an idempotent method or an idempotency key: none, if left out.
    ///
    /// ```
    /// # use dashpot_client::Manners;
    /// // To ask a model twice costs something, and does no harm.
    /// let manners = Manners::builder().may_repeat(|call| call.uri.path() == "/v1/messages").build();
    /// ```
    pub fn may_repeat(
        mut self,
        repeat: impl Fn(&Call<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.repeat = Box::new(repeat);
        self
    }

    /// What the header of an idempotency key is called: `Idempotency-Key`, if left out. A call that has it may be made
    /// again.
    pub fn idempotency_header(mut self, name: HeaderName) -> Self {
        self.settings.key = name;
        self
    }

    /// How many bytes of a body that is streamed are kept, to be sent again: 64 KiB, if left out. A longer one is sent, and the
    /// call not made again.
    pub fn replay(mut self, bytes: usize) -> Self {
        self.settings.replay = bytes;
        self
    }

    /// How many lanes there may be: 10 000, if left out. Idle ones make room for others; if there are none, newcomers share
    /// one.
    pub fn most_lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// Keeps time by this clock: for tests, and simulations.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes chance the same each time: for tests, and simulations.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The manners.
    #[must_use]
    pub fn build(self) -> Manners {
        let Self { settings, clock, lanes, backoff: (base, cap), seed } = self;
        let shared = Shared {
            store: MemoryStore::with_clock(clock.clone()),
            clock,
            lanes: Lanes::new(lanes),
            chance: Chance::new(seed, base, cap),
            settings,
        };
        Manners { shared: Arc::new(shared) }
    }
}

impl fmt::Debug for MannersBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MannersBuilder").finish_non_exhaustive()
    }
}
