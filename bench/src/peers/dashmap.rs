//! What people write themselves: a concurrent map of little buckets, each behind a lock.

use std::sync::Mutex;

use dashmap::DashMap;
use quanta::{Clock, Instant};

use crate::peer::{Peer, Setup, Usage};

pub(crate) struct DashMapBuckets {
    clock: Clock,
    buckets: DashMap<String, Mutex<Bucket>>,
    capacity: f64,
    per_second: f64,
}

struct Bucket {
    tokens: f64,
    at: Instant,
}

impl DashMapBuckets {
    /// Brings the bucket up to now.
    fn refill(&self, bucket: &mut Bucket, now: Instant) {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.tokens = (bucket.tokens + since * self.per_second).min(self.capacity);
        bucket.at = bucket.at.max(now);
    }

    fn take(&self, bucket: &Mutex<Bucket>) -> bool {
        let mut bucket = bucket.lock().expect("nobody panics with the lock");
        let now = self.clock.now();
        self.refill(&mut bucket, now);
        let enough = bucket.tokens >= 1.0;
        if enough {
            bucket.tokens -= 1.0;
        }
        enough
    }
}

impl Peer for DashMapBuckets {
    fn new(setup: &Setup) -> Self {
        Self {
            clock: Clock::new(),
            buckets: DashMap::new(),
            capacity: f64::from(setup.rate.burst),
            per_second: setup.rate.unit().as_secs_f64().recip(),
        }
    }

    fn check(&self, key: &String) -> bool {
        if let Some(bucket) = self.buckets.get(key) {
            return self.take(&bucket);
        }
        let full = || Mutex::new(Bucket { tokens: self.capacity, at: self.clock.now() });
        let bucket = self.buckets.entry(key.clone()).or_insert_with(full);
        self.take(&bucket)
    }

    fn housekeep(&self) {
        let now = self.clock.now();
        self.buckets.retain(|_, bucket| {
            let bucket = bucket.get_mut().expect("nobody panics with the lock");
            self.refill(bucket, now);
            bucket.tokens < self.capacity
        });
    }

    fn usage(&self) -> Usage {
        Usage { keys: self.buckets.len() as f64, ..Usage::UNTOLD }
    }
}
