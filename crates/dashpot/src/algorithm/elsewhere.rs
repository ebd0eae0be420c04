//! What stores ask that keep counts and time themselves.

use std::ops::Range;

use super::token_bucket::{Tat, TokenBucket};
use super::{Engine, Method, State, concurrency, fixed_window, sliding_log, sliding_window};
use crate::{Counted, Rate, Timestamp};

impl Engine {
    /// What somebody else remembers; `None` if this algorithm does not count like that.
    pub(crate) fn recall(&self, counted: Counted<'_>, now: Timestamp) -> Option<State> {
        Some(match (&self.method, counted) {
            (
                Method::TokenBucket(_) | Method::LeakyBucket(_),
                Counted::Bucket { full_at, rate },
            ) => {
                let mut tat = Tat::new(full_at);
                if let Some(bucket) = self.bucket() {
                    bucket.adopt(&TokenBucket::of(rate), &mut tat, now.as_nanos());
                }
                State::Bucket(tat)
            }
            (Method::FixedWindow(_), Counted::FixedWindow { start, count }) => {
                State::FixedWindow(fixed_window::Count::new(start, count))
            }
            (Method::SlidingWindow(_), Counted::SlidingWindow { start, previous, current }) => {
                State::SlidingWindow(sliding_window::Counts::new(start, previous, current))
            }
            (Method::SlidingLog(_), Counted::SlidingLog(entries)) => {
                State::SlidingLog(sliding_log::Log::new(entries))
            }
            (Method::Concurrency(_), Counted::Permits(permits)) => {
                State::Concurrency(concurrency::InFlight::new(permits))
            }
            _ => return None,
        })
    }

    /// The rate in lowest terms, of a bucket.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.bucket().map(TokenBucket::rate)
    }

    /// What so many units cost, in grains of a bucket.
    pub(crate) fn grains(&self, units: u64) -> u128 {
        self.bucket().map_or(0, |bucket| bucket.cost(units))
    }

    /// What so many are worth that are given back.
    pub(crate) fn worth(&self, units: u64) -> u128 {
        self.bucket().map_or(0, |bucket| bucket.worth(units))
    }

    /// How deep a bucket is, in grains.
    pub(crate) fn depth(&self) -> u128 {
        self.bucket().map_or(0, TokenBucket::depth)
    }

    /// The window that holds this moment, if windows are fixed.
    pub(crate) fn window_at(&self, now: Timestamp) -> Option<Range<u64>> {
        match &self.method {
            Method::FixedWindow(method) => Some(method.window_at(now.as_nanos())),
            _ => None,
        }
    }
}
