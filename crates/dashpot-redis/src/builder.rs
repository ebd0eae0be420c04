//! How a store is started.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use dashpot::StoreError;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::instances::keep_announcing;
use crate::lease::keep_up;
use crate::link::PROBE_EVERY;
use crate::renewal::keep_renewing;
use crate::settings::Settings;
use crate::store::{Inner, RedisStore};
use crate::target::{Target, UrlError, without_user};
use crate::topology::Topology;

/// Longer than anybody waits.
const LONGEST: Duration = Duration::from_secs(3600);

/// How a [`RedisStore`] is to be: where, and what it does when Redis takes its time.
#[derive(Clone)]
#[must_use]
pub struct RedisStoreBuilder {
    urls: Vec<String>,
    root_certificate: Option<Vec<u8>>,
    connect_timeout: Option<Duration>,
    is_instance: bool,
    settings: Settings,
}

/// Why a store could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// It was told something that makes no sense.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// Redis does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RedisStore {
    /// A store at this URL: `redis://`, `rediss://`, `redis-cluster://a,b,c` or
    /// `redis-sentinel://a,b/master`.
    pub fn builder(url: impl Into<String>) -> RedisStoreBuilder {
        Self::builder_on([url])
    }

    /// A store on several servers that know nothing of each other, or on one. Each key is on one of them,
    /// by its hash.
    pub fn builder_on(urls: impl IntoIterator<Item = impl Into<String>>) -> RedisStoreBuilder {
        RedisStoreBuilder {
            urls: urls.into_iter().map(Into::into).collect(),
            root_certificate: None,
            connect_timeout: None,
            is_instance: true,
            settings: Settings {
                prefix: "dashpot".to_owned(),
                deadline: Duration::from_millis(20),
                connect_timeout: PROBE_EVERY,
                permit_lease: Duration::from_secs(30),
                denial_memory: Duration::from_millis(100),
                lease: Duration::from_secs(2),
                interval: Duration::from_millis(100),
                least_instances: NonZeroU64::MIN,
            },
        }
    }

    /// A store at this URL that answers.
    ///
    /// # Errors
    /// If the URL makes no sense, or Redis does not answer within five seconds.
    pub async fn connect(url: impl Into<String>) -> Result<Self, ConnectError> {
        let store = Self::builder(url).start()?;
        store.ready(Duration::from_secs(5)).await?;
        Ok(store)
    }

    /// Gives back what is leased, and tells what was counted here: to be done before it is dropped. What is not given
    /// back is not to be had until its lease ends.
    pub async fn release(&self) {
        self.inner.release().await;
    }

    /// Waits until all servers answer.
    ///
    /// # Errors
    /// If they do not within this time.
    pub async fn ready(&self, within: Duration) -> Result<(), StoreError> {
        self.inner.topology.ready(Instant::now() + within.min(LONGEST)).await?;
        if self.inner.is_instance {
            self.inner.announce().await;
        }
        Ok(())
    }
}

/// Without users and passwords.
impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls: Vec<_> = self.urls.iter().map(|url| without_user(url)).collect();
        f.debug_struct("RedisStoreBuilder")
            .field("urls", &urls)
            .field("has_root_certificate", &self.root_certificate.is_some())
            .field("connect_timeout", &self.connect_timeout)
            .field("settings", &self.settings)
            .finish()
    }
}

impl RedisStoreBuilder {
    /// How long a decision may take before it is given up: 20 ms unless told otherwise, no less than one, and
    /// no more than an hour.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// How long an attempt to connect may take: 250 ms, or a second with TLS, unless told otherwise.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout.min(LONGEST));
        self
    }

    /// What the names of all keys begin with: `dashpot` unless told otherwise. Stores with different
    /// prefixes share nothing.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// When the permits of an instance that died come back: after 30 seconds unless told otherwise. While
    /// it lives it renews them. No less than a second.
    pub fn permit_lease(mut self, lease: Duration) -> Self {
        self.settings.permit_lease = lease.clamp(Duration::from_secs(1), 1_000_000 * LONGEST);
        self
    }

    /// How long a denial is repeated without asking Redis again: 100 ms unless told otherwise, and no
    /// longer. Zero asks every time.
    pub fn denial_memory(mut self, span: Duration) -> Self {
        self.settings.denial_memory = span.min(Duration::from_millis(100));
        self
    }

    /// How long a lease lasts under policies that are [leased](dashpot::Consistency::Leased), unless it is renewed:
    /// two seconds unless told otherwise, 100 ms to a minute, and at least eight deadlines. What an instance that died had
    /// leased comes back after that.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.clamp(Duration::from_millis(100), Duration::from_secs(60));
        self
    }

    /// How often Redis is told what was counted here under policies that are
    /// [approximate](dashpot::Consistency::Approximate): every 100 ms unless told otherwise, and 10 ms to a minute. What
    /// their rate grants in that time may be granted too much by each instance.
    pub fn reconcile_every(mut self, interval: Duration) -> Self {
        self.settings.interval = interval.clamp(Duration::from_millis(10), Duration::from_secs(60));
        self
    }

    /// Does not count as an instance: for tools that look in, and grant nothing while Redis is down.
    pub const fn visiting(mut self) -> Self {
        self.is_instance = false;
        self
    }

    /// Takes it that there are at least so many instances, also before they were counted: for those that
    /// start while Redis is down, and would else take themselves for the only one.
    pub const fn instances_at_least(mut self, instances: NonZeroU64) -> Self {
        self.settings.least_instances = instances;
        self
    }

    /// Trusts servers by this root certificate (PEM) instead of the system's.
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificate = Some(pem.into());
        self
    }

    /// Starts it. It connects by itself, and while it does, decisions wait for that up to their deadline.
    ///
    /// # Errors
    /// If a URL makes no sense, or there is no tokio runtime to run on.
    pub fn start(self) -> Result<RedisStore, UrlError> {
        let Self { urls, root_certificate, connect_timeout, is_instance, mut settings } = self;
        let printable = settings.prefix.chars().all(|c| c.is_ascii_graphic() && !"{}".contains(c));
        if !printable || settings.prefix.is_empty() || settings.prefix.len() > 64 {
            return Err(UrlError::Prefix);
        }
        let target = Target::parse(&urls, root_certificate.as_deref())?;
        let Ok(runtime) = Handle::try_current() else { return Err(UrlError::Runtime) };
        let is_secret = urls.iter().any(|url| url.starts_with("rediss"));
        let usual = if is_secret { Duration::from_secs(1) } else { PROBE_EVERY };
        settings.connect_timeout = connect_timeout.unwrap_or(usual);
        let settings = Arc::new(settings);
        let topology = Topology::start(target, &settings);
        let (lease, interval) = (settings.permit_lease, settings.interval);
        let inner = Arc::new(Inner::new(settings, topology, is_instance, runtime));
        if is_instance {
            tokio::spawn(keep_announcing(Arc::downgrade(&inner)));
        }
        tokio::spawn(keep_renewing(Arc::downgrade(&inner), lease));
        tokio::spawn(keep_up(Arc::downgrade(&inner), interval));
        Ok(RedisStore { inner })
    }
}
