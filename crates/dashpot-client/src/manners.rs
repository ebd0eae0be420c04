//! How to behave towards servers, and what is known of them.

mod builder;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dashpot::{Clock, MemoryStore, Percent, Policy, Timestamp};
use http::{HeaderMap, HeaderName, Method, StatusCode};

pub use builder::MannersBuilder;

use crate::chance::Chance;
use crate::lanes::Lanes;
use crate::learned::Thrift;
use crate::safety::{self, Mishap};
use crate::traffic::{Terms, Traffic};
use crate::{Call, Lane, Pace};

/// How long one call may wait, in the place of [what all may](MannersBuilder::patience): put it into the extensions of a
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Patience(pub Duration);

/// How many tokens of a language model a call will take, about: put it into the extensions of a request. It waits then
/// until the server has told that so many are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tokens(pub u64);

/// How to behave towards servers, and what is known of them. Clones share it: one for a program is usual, and it may be
/// used by several clients.
///
/// ```
/// use dashpot_client::{Manners, Pace};
/// use std::time::Duration;
///
/// let manners = Manners::builder()
///     .pace(Pace::at_most("10/s burst 20".parse()?).concurrent(8))    // to each server
///     .patience(Duration::from_secs(30))
///     .attempts(4)
///     .build();
/// # Ok::<(), dashpot::ParseQuotaError>(())
/// ```
///
/// As it is by default, it waits when the server says so; makes a call up to four times within two minutes, if that does no
/// harm; and makes no more than a fifth of all calls again, or ten in a minute.
#[derive(Clone, Debug)]
pub struct Manners {
    shared: Arc<Shared>,
}

/// Which lane a call takes.
type Route = Box<dyn Fn(&Call<'_>) -> Lane + Send + Sync>;

/// Whether a call may be made twice that would not be otherwise.
type Repeat = Box<dyn Fn(&Call<'_>) -> bool + Send + Sync>;

/// What becomes of a call that failed without an answer.
type Judge = Box<dyn Fn(&(dyn Error + 'static)) -> Mishap + Send + Sync>;

struct Shared {
    clock: Arc<dyn Clock>,
    store: MemoryStore,
    lanes: Lanes,
    chance: Chance,
    settings: Settings,
}

/// What the builder was told.
struct Settings {
    route: Route,
    repeat: Repeat,
    judge: Option<Judge>,
    pace: Pace,
    overall: Vec<Policy>,
    patience: Duration,
    attempts: u32,
    statuses: Vec<StatusCode>,
    share: Percent,
    floor: Option<Policy>,
    longest: Duration,
    thrift: Thrift,
    key: HeaderName,
    attaches_key: bool,
    replay: usize,
}

impl Default for Manners {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Manners {
    /// Starts with the defaults.
    pub fn builder() -> MannersBuilder {
        MannersBuilder::new()
    }

    /// How many lanes it knows.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.shared.lanes.len()
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    pub(crate) fn terms(&self) -> Terms<'_> {
        let Shared { store, settings, .. } = &*self.shared;
        Terms { store, overall: &settings.overall, thrift: settings.thrift }
    }

    pub(crate) fn chance(&self) -> &Chance {
        &self.shared.chance
    }

    /// Where a call goes, and at which pace if that is not the lane's.
    pub(crate) fn traffic(&self, call: &Call<'_>, now: Timestamp) -> (Arc<Traffic>, Option<Pace>) {
        let Shared { store, lanes, settings, .. } = &*self.shared;
        lanes.find((settings.route)(call), &settings.pace, store, now)
    }

    pub(crate) fn patience(&self) -> Duration {
        self.shared.settings.patience
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.shared.settings.attempts
    }

    pub(crate) fn statuses(&self) -> &[StatusCode] {
        &self.shared.settings.statuses
    }

    /// The longest wait that is believed.
    pub(crate) fn longest(&self) -> Duration {
        self.shared.settings.longest
    }

    /// The share of calls that may be made again.
    pub(crate) fn share(&self) -> Percent {
        self.shared.settings.share
    }

    /// How many bytes of a body are kept to be sent again.
    pub(crate) fn replay(&self) -> usize {
        self.shared.settings.replay
    }

    /// Marks a call that is not idempotent, if that is wanted.
    pub(crate) fn mark(&self, method: &Method, headers: &mut HeaderMap) {
        let Settings { key, attaches_key, .. } = &self.shared.settings;
        if *attaches_key {
            safety::attach_key(method, headers, key);
        }
    }

    /// Whether a call may be made twice.
    pub(crate) fn may_repeat(&self, call: &Call<'_>) -> bool {
        let Settings { key, repeat, .. } = &self.shared.settings;
        safety::is_safe(call.method, call.headers, key) || repeat(call)
    }

    /// What somebody says becomes of a call after such an error, if it was asked.
    pub(crate) fn judge(&self, error: &(dyn Error + 'static)) -> Option<Mishap> {
        self.shared.settings.judge.as_ref().map(|judge| judge(error))
    }

    /// Takes one of the retries that are there however few calls are made.
    pub(crate) fn take_of_floor(&self, traffic: &Traffic) -> bool {
        let floor = self.shared.settings.floor.as_ref();
        floor.is_some_and(|floor| {
            let check = dashpot::Check::new(floor, traffic.key());
            self.shared.store.decide_now(&[check]).is_allowed()
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("lanes", &self.lanes.len()).finish_non_exhaustive()
    }
}
