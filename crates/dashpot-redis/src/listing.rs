//! What is kept, as far as this prefix goes.

use std::collections::HashSet;
use std::time::Duration;

use dashpot::StoreError;
use redis::Value;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::key::{placed_by, unescape};
use crate::link::Link;
use crate::script;
use crate::store::RedisStore;

/// How many keys a server looks at for one call.
const STRIDE: usize = 512;

/// A key that something is kept of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptKey {
    /// The name of the policy.
    pub policy: String,
    /// What it counts by; empty if it counts everybody.
    pub key: Vec<u8>,
    /// How long that will be kept if nothing happens.
    pub expires_in: Duration,
    name: Vec<u8>,
}

impl RedisStore {
    /// Lists what is kept of a policy, or of all, up to so many keys. Servers are asked for a few hundred
    /// keys at a time, so that they go on answering others; what comes and goes meanwhile may be missed.
    ///
    /// # Errors
    /// If a server does not answer.
    pub async fn list(
        &self,
        policy: Option<&str>,
        at_most: usize,
    ) -> Result<Vec<KeptKey>, StoreError> {
        let mut found: Vec<KeptKey> = Vec::new();
        // While it is looked through, a server may tell of a key more than once.
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        for link in self.inner.topology.links() {
            let mut cursor = "0".to_owned();
            while found.len() < at_most {
                let names;
                (cursor, names) = self.scan(&link, &cursor).await?;
                for name in names {
                    let wanted = policy_of(&self.inner.settings.prefix, &name)
                        .filter(|own| policy.is_none_or(|policy| policy == own));
                    if let Some(policy) = wanted
                        && found.len() < at_most
                        && seen.insert(name.clone())
                    {
                        found.extend(self.kept(&link, policy, name).await?);
                    }
                }
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Forgets what was counted for a policy, or for all, up to so many keys; answers for how many. Blocks
    /// stay.
    ///
    /// # Errors
    /// If a server does not answer.
    pub async fn reset_all(
        &self,
        policy: Option<&str>,
        at_most: usize,
    ) -> Result<usize, StoreError> {
        let keys = self.list(policy, at_most).await?;
        for key in &keys {
            let mut call = script::MANAGE.call(std::iter::once(key.name.as_slice()));
            call.arg("reset").arg(0);
            let spot = self.inner.topology.spot(&key.name);
            self.inner.topology.call(spot, &call, self.patient()).await?;
            self.inner.forget(&key.name);
            self.inner.drop_lease(&key.name);
        }
        Ok(keys.len())
    }

    /// Nobody waits for these calls in a hurry.
    fn patient(&self) -> Instant {
        Instant::now() + Duration::from_secs(1)
    }

    async fn scan(&self, link: &Link, cursor: &str) -> Result<(String, Vec<Vec<u8>>), StoreError> {
        let mut scan = redis::cmd("SCAN");
        let pattern = format!("{}:{{*", glob(&self.inner.settings.prefix));
        scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(STRIDE);
        let value = link.call(&scan, self.patient()).await?;
        redis::from_redis_value(value).map_err(|_| Failure::Odd("the answer to SCAN").into())
    }

    async fn kept(
        &self,
        link: &Link,
        policy: String,
        name: Vec<u8>,
    ) -> Result<Option<KeptKey>, StoreError> {
        let mut question = redis::cmd("PTTL");
        question.arg(&name);
        let Value::Int(millis) = link.call(&question, self.patient()).await? else {
            return Err(Failure::Odd("the answer to PTTL").into());
        };
        // It is gone by now, if there is none.
        let Ok(millis) = u64::try_from(millis) else { return Ok(None) };
        let tag = placed_by(&name);
        let key = if tag.starts_with(b"%-") { Some(Vec::new()) } else { unescape(tag) };
        let expires_in = Duration::from_millis(millis);
        Ok(key.map(|key| KeptKey { policy, key, expires_in, name }))
    }
}

/// A prefix as patterns have it.
fn glob(prefix: &str) -> String {
    let escaped = |c: char| {
        let special = matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-');
        special.then_some('\\').into_iter().chain([c])
    };
    prefix.chars().flat_map(escaped).collect()
}

/// The policy in the name of a key; `None` if it is not the name of one of ours.
fn policy_of(prefix: &str, name: &[u8]) -> Option<String> {
    let rest = name.strip_prefix(prefix.as_bytes())?.strip_prefix(b":{")?;
    let close = rest.iter().position(|&byte| byte == b'}')?;
    let rest = std::str::from_utf8(rest.get(close + 1..)?).ok()?;
    let (policy, _) = rest.strip_prefix(':')?.rsplit_once(':')?;
    Some(policy.to_owned())
}
