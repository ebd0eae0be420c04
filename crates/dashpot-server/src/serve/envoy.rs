//! Envoy's rate limit service. Its names are its own, and stay in here.

mod answer;
mod compile;
mod decide;
mod facts;
mod frame;
pub(crate) mod grpc;
mod health;
pub(crate) mod json;
mod limits;
mod live;
mod message;
mod pattern;
mod problem;
mod question;
mod unit;
mod yaml;

pub(crate) use compile::Terms;
pub(crate) use health::Others;
pub(crate) use limits::Limits;
pub(crate) use live::LiveLimits;
pub(crate) use message::{Code, RateLimitRequest, RateLimitResponse};
pub(crate) use problem::Problems;

use std::path::Path;

use dashpot::{Algorithm, Policy};
use dashpot_rules::{OnStoreError, Plan};

use crate::serve::service::Service;
use message::{Entry, RateLimitDescriptor};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The question is wrong.
    Invalid {
        /// Where.
        field: String,
        /// Why.
        detail: String,
    },
    /// The store does not answer, and nothing is let pass without it.
    Unavailable(String),
}

/// Answers a call.
pub(crate) async fn answer(
    service: &Service,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Fault> {
    match answer_now(service, request) {
        Some(answer) => answer,
        None => Box::pin(answer_in_time(service, request)).await,
    }
}

/// The answer, if the store has it at once and nothing is special. Else nothing was asked. Futures are moved about, and this
/// is long: so it is not kept in one.
pub(crate) fn answer_now(
    service: &Service,
    request: &RateLimitRequest,
) -> Option<Result<RateLimitResponse, Fault>> {
    if let Err(fault) = question::validate(request) {
        return Some(Err(fault));
    }
    let (limits, rules) = (service.envoy.borrow(), service.rules.borrow());
    if service.envoy.counts_denied || request.descriptors.iter().any(|one| one.limit.is_some()) {
        return None;
    }
    let parts = question::parts(request, &[], &limits, &rules);
    let decided = decide::at_once(service, request, &parts)?;
    note_unknown(service, request, &limits, &parts);
    Some(decided.map(|decided| answer::tell(&parts, &decided, rules.headers())))
}

/// Answers a call that takes waiting.
pub(crate) async fn answer_in_time(
    service: &Service,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Fault> {
    question::validate(request)?;
    let (limits, rules) = (service.envoy.current(), service.rules.current());
    let overrides = question::overrides(request, service)?;
    let parts = question::parts(request, &overrides, &limits, &rules);
    question::can_give_back(&parts)?;
    note_unknown(service, request, &limits, &parts);
    let decided = if service.envoy.counts_denied {
        decide::one_by_one(service, request, &parts).await?
    } else {
        decide::together(service, request, &parts).await?
    };
    Ok(answer::tell(&parts, &decided, rules.headers()))
}

fn note_unknown(
    service: &Service,
    request: &RateLimitRequest,
    limits: &Limits,
    parts: &[question::Part<'_>],
) {
    if !limits.knows(&request.domain) && parts.iter().all(question::Part::is_free) {
        service.note_unknown(&request.domain);
    }
}

/// Reads YAML without serving by it: how many limits there are, and what is to be said about it.
pub(crate) fn check(place: &Path) -> Result<(usize, Vec<String>), Problems> {
    let terms = Terms {
        algorithm: Algorithm::FixedWindow,
        on_store_error: OnStoreError::default(),
        on_redis: false,
    };
    let limits = LiveLimits::load(Some(place.to_owned()), terms, false)?.current();
    Ok((limits.rules().len(), limits.advice.clone()))
}

/// What a descriptor is counted by, policy by policy.
pub(crate) fn counted_by(
    service: &Service,
    domain: String,
    entries: Vec<Entry>,
) -> Result<Vec<(Policy, Vec<u8>)>, String> {
    let descriptor = RateLimitDescriptor { entries, ..RateLimitDescriptor::default() };
    let request = RateLimitRequest { domain, descriptors: vec![descriptor], hits_addend: 1 };
    let wrong = |fault| match fault {
        Fault::Invalid { field, detail } => format!("{field}: {detail}"),
        Fault::Unavailable(detail) => detail,
    };
    question::validate(&request).map_err(wrong)?;
    let (limits, rules) = (service.envoy.current(), service.rules.current());
    let mut plan = Plan::empty();
    for (part, descriptor) in
        question::parts(&request, &[], &limits, &rules).iter().zip(&request.descriptors)
    {
        part.ask(&request.domain, descriptor, &mut plan, 1);
    }
    let each = plan.keys().flat_map(|(_, policies, key)| {
        policies.iter().map(move |policy| (policy.clone(), key.as_bytes().to_vec()))
    });
    let counted: Vec<_> = each.collect();
    if counted.is_empty() { Err("nothing counts this descriptor".to_owned()) } else { Ok(counted) }
}
