//! What was taken and is to be settled, as a text that callers keep.
//!
//! All of it is in the text, signed: so any instance can settle it that has the same secret, and nothing has
//! to be remembered of those who never come back, but for their permits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dashpot::{Cost, Key, Policy, Reservation, Timestamp};
use dashpot_rules::Settle;
use serde::{Deserialize, Serialize};

use crate::serve::secret::{SIGNATURE, Secret};

/// What was taken by one question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Taken {
    /// Tells it from all others.
    pub(crate) id: u128,
    /// When it is too late to settle, in milliseconds since the epoch.
    until: u64,
    /// Which process counted it, if not the store.
    process: u64,
    parts: Vec<Part>,
}

/// What one check took.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    name: String,
    quota: String,
    algorithm: String,
    queue: Option<u64>,
    undelayed: u64,
    /// How much of the policy there was.
    #[serde(default = "whole")]
    percent: u8,
    zone: String,
    #[serde(with = "hex")]
    key: Vec<u8>,
    cost: u64,
    at: u64,
    permit: u64,
    how: How,
    /// Whether this process counted it, because the store did not answer.
    pub(crate) local: bool,
    /// Whether it is only this process that knows of it: permits in memory end with it, too.
    here: bool,
}

/// All of a policy, as texts mean it that say nothing.
const fn whole() -> u8 {
    100
}

/// How it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum How {
    /// By what was used.
    Used,
    /// All of it stays charged, unless nothing was used.
    Whole,
    /// It is a permit, and given back.
    Release,
}

impl From<&Settle> for How {
    fn from(settle: &Settle) -> Self {
        match settle {
            Settle::ChargeOn(_) => Self::Whole,
            Settle::Release => Self::Release,
            _ => Self::Used,
        }
    }
}

impl Part {
    pub(crate) fn new(reservation: &Reservation, how: How, local: bool) -> Self {
        let policy = reservation.policy();
        Self {
            name: policy.name().to_owned(),
            quota: policy.quota().to_string(),
            algorithm: policy.algorithm().to_string(),
            queue: policy.queue(),
            undelayed: policy.undelayed(),
            percent: policy.percent(),
            zone: policy.zone().to_string(),
            key: reservation.key().as_bytes().to_vec(),
            cost: reservation.cost().units(),
            at: reservation.charged_at().as_nanos(),
            permit: reservation.permit(),
            how,
            local,
            here: local,
        }
    }

    /// The same, if permits are kept in memory.
    pub(crate) fn in_memory(mut self) -> Self {
        self.here |= self.is_permit();
        self
    }

    /// What was taken; `None` if it is written in a way that is no longer known.
    pub(crate) fn reservation(&self) -> Option<Reservation> {
        let mut policy = Policy::builder(&self.name, self.quota.parse().ok()?)
            .algorithm(self.algorithm.parse().ok()?)
            .zone(self.zone.parse().ok()?);
        if let Some(places) = self.queue {
            policy = policy.queue(places).undelayed(self.undelayed);
        }
        let (cost, at) = (Cost::new(self.cost), Timestamp::from_nanos(self.at));
        let taken = Reservation::new(
            policy.build().ok()?.reduced_to(self.percent),
            Key::new(&self.key),
            cost,
            at,
        );
        Some(taken.with_permit(self.permit))
    }

    pub(crate) fn is_permit(&self) -> bool {
        self.how == How::Release
    }

    /// What to charge, if so much was used.
    pub(crate) fn charge(&self, used: u64) -> Cost {
        match self.how {
            How::Used => Cost::new(used),
            How::Whole if used == 0 => Cost::PEEK,
            How::Whole | How::Release => Cost::new(self.cost),
        }
    }
}

/// Why a text cannot be settled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It is none of ours.
    Foreign,
    /// It is too old.
    Late,
}

impl Taken {
    pub(crate) fn new(parts: Vec<Part>, process: u64, ttl: Duration) -> Self {
        let until = now_millis().saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        Self { id: fastrand::u128(..), until, process, parts }
    }

    /// As a text.
    pub(crate) fn seal(&self, secret: &Secret) -> String {
        // Numbers and texts are always JSON.
        let mut message = serde_json::to_vec(self).unwrap_or_default();
        message.extend_from_slice(&secret.sign(&message));
        URL_SAFE_NO_PAD.encode(message)
    }

    /// From a text.
    pub(crate) fn open(text: &str, secret: &Secret) -> Result<Self, Unknown> {
        let message = URL_SAFE_NO_PAD.decode(text).map_err(|_| Unknown::Foreign)?;
        let end = message.len().checked_sub(SIGNATURE).ok_or(Unknown::Foreign)?;
        let (message, signature) = message.split_at(end);
        if !secret.has_signed(message, signature) {
            return Err(Unknown::Foreign);
        }
        let taken: Self = serde_json::from_slice(message).map_err(|_| Unknown::Foreign)?;
        if taken.until <= now_millis() { Err(Unknown::Late) } else { Ok(taken) }
    }

    /// What this process can settle: what another counted by itself only that one can.
    pub(crate) fn parts(&self, process: u64) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| !part.here || self.process == process)
    }

    /// Whether no store but that of a process has counted any of it.
    pub(crate) fn is_local(&self) -> bool {
        self.parts.iter().all(|part| part.local)
    }

    pub(crate) fn has_permits(&self) -> bool {
        self.parts.iter().any(Part::is_permit)
    }
}

fn now_millis() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Keys may be any bytes.
pub(crate) mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn encode(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
        let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        text.as_bytes().chunks(2).map(pair).collect()
    }

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        decode(&text).ok_or_else(|| D::Error::custom("not hexadecimal"))
    }
}
