//! A request that is served, watched from when it begins until its answer does.

use std::sync::Arc;

use dashpot::{Pass, Timestamp};
use dashpot_rules::Adaptive;
use http::StatusCode;

use crate::response_body::Held;

/// Tells gates and adaptive rules how a request fares. Mostly there are none, and nobody watches.
pub(crate) struct Watch {
    passes: Vec<Pass>,
    /// Who wants to know, and when it began by their clock.
    told: Vec<(Arc<Adaptive>, Timestamp)>,
}

impl Watch {
    /// Begins to watch, if somebody wants to know.
    pub(crate) fn begin(passes: Vec<Pass>, adaptive: Vec<Arc<Adaptive>>) -> Option<Self> {
        if passes.is_empty() && adaptive.is_empty() {
            return None;
        }
        let told = adaptive.into_iter().map(|one| {
            let began = one.begin();
            (one, began)
        });
        Some(Self { passes, told: told.collect() })
    }

    /// The answer begins. What is in flight until it was sent is held by it.
    pub(crate) fn answered(mut self, status: StatusCode) -> Option<Box<dyn Held>> {
        self.tell(!status.is_server_error());
        let passes = std::mem::take(&mut self.passes);
        if passes.is_empty() { None } else { Some(Box::new(InFlight { _passes: passes })) }
    }

    /// There is none.
    pub(crate) fn failed(mut self) {
        self.tell(false);
    }

    fn tell(&mut self, is_good: bool) {
        for pass in &mut self.passes {
            if is_good { pass.succeeded() } else { pass.failed() }
        }
        for (adaptive, began) in self.told.drain(..) {
            adaptive.answered(began, is_good);
        }
    }
}

/// The handler panicked, or the caller has hung up.
impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell(false);
        }
        for (adaptive, began) in self.told.drain(..) {
            adaptive.abandoned(began);
        }
    }
}

/// Held until the response was sent.
struct InFlight {
    _passes: Vec<Pass>,
}

impl Held for InFlight {}
