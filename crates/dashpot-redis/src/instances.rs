//! How many instances there are: each says so every second, and is believed for five.

use std::num::NonZeroU64;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::Value;
use tokio::time::{Instant, sleep};

use crate::script;
use crate::store::Inner;

const ANNOUNCED_EVERY: Duration = Duration::from_secs(1);

/// How long an instance is believed to live after it last said so.
const BELIEVED_FOR: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Instances {
    /// The name of this one.
    name: String,
    /// There are no fewer.
    least: NonZeroU64,
    count: AtomicU64,
    /// When a count was last heard that was not interrupted.
    heard: Mutex<Option<Heard>>,
}

#[derive(Debug)]
struct Heard {
    since: Instant,
    last: Instant,
}

impl Instances {
    pub(crate) fn new(least: NonZeroU64) -> Self {
        let name = format!("{:016x}", fastrand::u64(..));
        Self { name, least, count: AtomicU64::new(least.get()), heard: Mutex::default() }
    }

    pub(crate) fn count(&self) -> NonZeroU64 {
        NonZeroU64::new(self.count.load(Ordering::Relaxed)).unwrap_or(NonZeroU64::MIN)
    }

    /// Takes notice of a count. After an outage everybody has to announce themselves anew: until they had
    /// time to, fewer are not believed.
    fn hear(&self, count: u64) {
        let now = Instant::now();
        let mut heard = self.heard.lock();
        let since = match &*heard {
            Some(heard) if now.duration_since(heard.last) < BELIEVED_FOR => heard.since,
            _ => now,
        };
        *heard = Some(Heard { since, last: now });
        let is_settled = now.duration_since(since) >= BELIEVED_FOR;
        let known = if is_settled { 1 } else { self.count.load(Ordering::Relaxed) };
        let least = known.max(self.least.get());
        self.count.store(count.max(least), Ordering::Relaxed);
    }
}

impl Inner {
    /// Says to every server that this instance lives, and hears how many do.
    pub(crate) async fn announce(&self) {
        let key = format!("{}:{{instances}}", self.settings.prefix);
        let mut most = None;
        for spot in self.topology.spots_for(key.as_bytes()) {
            let mut call = script::ANNOUNCE.call(std::iter::once(key.as_bytes()));
            call.arg(&self.instances.name).arg(BELIEVED_FOR.as_micros().to_string());
            let deadline = Instant::now() + self.settings.connect_timeout;
            if let Ok(Value::Int(count)) = self.topology.call(spot, &call, deadline).await {
                most = most.max(u64::try_from(count).ok());
            }
        }
        if let Some(count) = most {
            self.instances.hear(count);
        }
    }
}

/// Says every second that this instance lives, for as long as there is a store.
pub(crate) async fn keep_announcing(store: Weak<Inner>) {
    while let Some(store) = store.upgrade() {
        store.announce().await;
        drop(store);
        sleep(ANNOUNCED_EVERY).await;
    }
}
