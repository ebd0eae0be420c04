//! From a call to a plan.

use dashpot::{Algorithm, Policy};
use dashpot_rules::{Plan, Refusal, Rule, RuleSet};
use smallvec::SmallVec;

use super::Fault;
use super::compile::{LEVELS_MAX, Terms};
use super::facts::Facts;
use super::limits::{Found, Limits};
use super::message::{RateLimitDescriptor, RateLimitOverride, RateLimitRequest, Unit};
use crate::serve::metrics;
use crate::serve::service::Service;

/// The most descriptors of a call.
const DESCRIPTORS_MAX: usize = 64;

/// What limits that come with a request are called.
const OVERRIDE: &str = "override";

/// What a descriptor costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hits {
    /// Nothing; it is over if nothing remains.
    Look,
    Take(u64),
    /// So much was taken too much.
    GiveBack(u64),
}

impl Hits {
    fn of(descriptor: &RateLimitDescriptor, request: &RateLimitRequest) -> Self {
        let count = match descriptor.hits_addend {
            Some(own) => own,
            None => u64::from(request.hits_addend.max(1)),
        };
        match count {
            0 => Self::Look,
            count if descriptor.is_negative_hits => Self::GiveBack(count),
            count => Self::Take(count),
        }
    }

    /// How often a rule is asked for it.
    pub(super) const fn times(self) -> u64 {
        match self {
            Self::Take(count) => count,
            Self::Look | Self::GiveBack(_) => 0,
        }
    }
}

/// A limit that is told as it was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    pub(super) count: u32,
    pub(super) unit: Unit,
    pub(super) name: &'a str,
}

/// What holds a descriptor.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each descriptor, and there are few")]
pub(super) enum Held<'r> {
    Nothing,
    Unlimited,
    /// A limit of the YAML, or one that came with the request.
    Limit {
        rule: &'r Rule,
        written: Written<'r>,
        shared: Vec<(usize, &'r str)>,
    },
    /// Rules, which tell of themselves.
    Rules(Plan<'r>),
}

/// Where among the rules that are asked those of a descriptor are: mostly one.
pub(super) type Places = SmallVec<[usize; 2]>;

/// A descriptor, and what holds it.
#[derive(Debug)]
pub(super) struct Part<'r> {
    pub(super) held: Held<'r>,
    pub(super) hits: Hits,
}

/// Limits that came with the request, where there are any.
pub(super) fn overrides(
    request: &RateLimitRequest,
    service: &Service,
) -> Result<Vec<Option<Rule>>, Fault> {
    // Mostly there are none.
    if request.descriptors.iter().all(|descriptor| descriptor.limit.is_none()) {
        return Ok(Vec::new());
    }
    let each = |(number, descriptor): (usize, &RateLimitDescriptor)| {
        let limit = descriptor.limit.as_ref();
        limit.map(|limit| overriding(limit, number, service)).transpose()
    };
    request.descriptors.iter().enumerate().map(each).collect()
}

fn overriding(limit: &RateLimitOverride, number: usize, service: &Service) -> Result<Rule, Fault> {
    let Terms { on_store_error, .. } = service.envoy.terms;
    let wrong = |field: &str, detail: String| {
        let field = format!("descriptors[{number}].limit{field}");
        Fault::Invalid { field, detail }
    };
    let unit = Unit::numbered(limit.unit);
    let unit = unit.ok_or_else(|| wrong(".unit", "not a unit of time".to_owned()))?;
    let policy = service.envoy.terms.policy(OVERRIDE, limit.requests_per_unit, unit);
    let policy = policy.map_err(|detail| wrong("", detail))?;
    let tally = service.counters.overrides.clone();
    Ok(Rule::detached(metrics::OVERRIDE, policy, false, on_store_error, tally))
}

/// What holds each descriptor.
pub(super) fn parts<'r>(
    request: &RateLimitRequest,
    overrides: &'r [Option<Rule>],
    limits: &'r Limits,
    rules: &'r RuleSet,
) -> Vec<Part<'r>> {
    let is_known = limits.knows(&request.domain);
    let mut replaced: Vec<&str> = Vec::new();
    let mut parts = Vec::with_capacity(request.descriptors.len());
    for (number, descriptor) in request.descriptors.iter().enumerate() {
        let held = match (overrides.get(number), &descriptor.limit) {
            (Some(Some(rule)), Some(limit)) => {
                let unit = Unit::numbered(limit.unit).unwrap_or(Unit::Unknown);
                let written = Written { count: limit.requests_per_unit, unit, name: "" };
                Held::Limit { rule, written, shared: Vec::new() }
            }
            _ if is_known => match limits.find(&request.domain, &descriptor.entries) {
                None => Held::Nothing,
                Some(Found { limit, shared }) => {
                    replaced.extend(limit.replaces.iter().map(String::as_str));
                    let written =
                        Written { count: limit.count, unit: limit.unit, name: &limit.name };
                    match &limit.rule {
                        None => Held::Unlimited,
                        Some(rule) => Held::Limit { rule, written, shared },
                    }
                }
            },
            _ if rules.is_empty() => Held::Nothing,
            _ => {
                let entries = &descriptor.entries;
                let facts = Facts { domain: &request.domain, entries, rules };
                Held::Rules(rules.select(&facts).plan(&facts))
            }
        };
        parts.push(Part { held, hits: Hits::of(descriptor, request) });
    }
    // A limit drops others of the same call by their names.
    for part in &mut parts {
        if let Held::Limit { written, .. } = part.held
            && !written.name.is_empty()
            && replaced.contains(&written.name)
        {
            part.held = Held::Nothing;
        }
    }
    parts
}

impl<'r> Part<'r> {
    /// Adds its questions to a plan, so many times. Tells where among the rules that are asked its own are.
    pub(super) fn ask(
        &self,
        domain: &str,
        descriptor: &RateLimitDescriptor,
        plan: &mut Plan<'r>,
        times: u64,
    ) -> Places {
        match &self.held {
            Held::Nothing | Held::Unlimited => Places::new(),
            Held::Limit { rule, shared, .. } => {
                let place = plan.len();
                let value = |number: usize| {
                    let pattern = shared.iter().find(|(known, _)| *known == number);
                    pattern.map(|(_, pattern)| *pattern)
                };
                let entries = descriptor.entries.iter().enumerate();
                let key = entries.flat_map(|(number, entry)| {
                    [entry.key.as_str(), value(number).unwrap_or(&entry.value)]
                });
                plan.ask(rule, ["domain", domain].into_iter().chain(key), times);
                Places::from_slice(&[place])
            }
            Held::Rules(own) => plan.join(&own.clone().times(times)).into(),
        }
    }

    /// Whether nothing is about it.
    pub(super) fn is_free(&self) -> bool {
        match &self.held {
            Held::Nothing => true,
            Held::Rules(plan) => plan.is_empty() && plan.refusal().is_none(),
            Held::Unlimited | Held::Limit { .. } => false,
        }
    }

    /// Whether something it is held by is a log.
    fn is_logged(&self) -> bool {
        let is_log = |policy: &Policy| policy.algorithm() == Algorithm::SlidingLog;
        match &self.held {
            Held::Nothing | Held::Unlimited => false,
            Held::Limit { rule, .. } => rule.policies().any(is_log),
            Held::Rules(plan) => plan.keys().any(|(_, policies, _)| policies.iter().any(is_log)),
        }
    }

    pub(super) const fn gives_back(&self) -> bool {
        matches!(self.hits, Hits::GiveBack(_))
    }

    /// Why it is refused whatever was counted, if it is.
    pub(super) fn refusal(&self) -> Option<Refusal<'r>> {
        match &self.held {
            Held::Rules(plan) => plan.refusal(),
            _ => None,
        }
    }
}

/// Whether everything can be given back that is to be: a log gives back only what it knows when was taken.
pub(super) fn can_give_back(parts: &[Part<'_>]) -> Result<(), Fault> {
    match parts.iter().position(|part| part.gives_back() && part.is_logged()) {
        None => Ok(()),
        Some(number) => wrong(
            format!("descriptors[{number}].is_negative_hits"),
            "a sliding log cannot tell which of its hits to give back",
        ),
    }
}

/// Whether a call is one that can be answered.
pub(super) fn validate(request: &RateLimitRequest) -> Result<(), Fault> {
    if request.domain.is_empty() {
        return wrong("domain", "must not be empty");
    }
    match request.descriptors.len() {
        0 => return wrong("descriptors", "there must be one at least"),
        1..=DESCRIPTORS_MAX => {}
        _ => return wrong("descriptors", format!("at most {DESCRIPTORS_MAX}")),
    }
    for (number, descriptor) in request.descriptors.iter().enumerate() {
        let field = || format!("descriptors[{number}].entries");
        match descriptor.entries.len() {
            0 => return wrong(field(), "there must be one at least"),
            1..=LEVELS_MAX => {}
            _ => return wrong(field(), format!("at most {LEVELS_MAX}")),
        }
        if let Some(empty) = descriptor.entries.iter().position(|entry| entry.key.is_empty()) {
            return wrong(format!("{}[{empty}].key", field()), "must not be empty");
        }
    }
    Ok(())
}

fn wrong(field: impl Into<String>, detail: impl Into<String>) -> Result<(), Fault> {
    Err(Fault::Invalid { field: field.into(), detail: detail.into() })
}
