//! `POST /v1/health`: the service is told how others are doing, and what follows from that.

use std::time::Duration;

use dashpot::{Percent, Vitals};
use dashpot_rules::{Rule, RuleSet};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admin::admit;
use super::openapi::{self, Documented};
use super::{Answered, Call, Route, json};
use crate::limit;
use crate::serve::metrics::Door;
use crate::serve::service::Shared;
use crate::serve::text::Text;
use crate::serve::wrong::Wrong;

pub(crate) const PUSH: Route = Route {
    method: Method::POST,
    path: "/v1/health",
    door: Door::Admin,
    handle: |service, call| Box::pin(async move { push(service, call) }),
    documented: || {
        Documented::new("Tell adaptive rules how the service is doing")
            .takes::<Pushed<'_>>()
            .gives::<AdaptiveRules>(200, "The rules that adapt")
            .with(openapi::limited())
            .admin()
    },
};

/// How long what is told is believed, unless it is said.
const LASTS: Duration = Duration::from_secs(10);

/// How long at most.
const LONGEST: Duration = Duration::from_secs(3600);

/// How the service is doing: what is said takes the place of what is measured.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pushed<'a> {
    /// How busy the processors are, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    cpu: Option<f64>,
    /// How many requests fail.
    #[schemars(range(min = 0.0, max = 1.0))]
    errors: Option<f64>,
    /// How many take too long.
    #[schemars(range(min = 0.0, max = 1.0))]
    slow: Option<f64>,
    /// For how long that is believed: 10s, unless it is said; at most 1h.
    #[serde(borrow, rename = "for")]
    lasts: Option<Text<'a>>,
    /// Only this rule is told; else all that adapt.
    #[serde(borrow)]
    rule: Option<Text<'a>>,
}

/// The rules that adapt.
#[derive(Debug, Serialize, JsonSchema)]
struct AdaptiveRules {
    adaptive: Vec<AdaptiveRule>,
}

/// A rule that adapts.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AdaptiveRule {
    rule: String,
    /// How much of its limits there is, from 0 to 1.
    factor: f64,
    /// What was found when it was last looked at; `null` if that is not known.
    cpu: Option<f64>,
    errors: Option<f64>,
    slow: Option<f64>,
}

impl AdaptiveRule {
    fn of(rule: &Rule) -> Option<Self> {
        let adaptive = rule.adaptive()?;
        let factor = f64::from(adaptive.percent()) / 100.0;
        let Vitals { cpu, errors, slow } = adaptive.vitals();
        let [cpu, errors, slow] = [cpu, errors, slow].map(|part| part.map(Percent::as_fraction));
        Some(Self { rule: rule.name().to_owned(), factor, cpu, errors, slow })
    }

    pub(super) fn all(rules: &RuleSet) -> Vec<Self> {
        rules.rules().iter().filter_map(Self::of).collect()
    }
}

/// A rule with a capacity.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CapacityRule {
    rule: String,
    /// How many it lets in at once, for now.
    limit: u64,
    in_flight: u64,
    waiting: u64,
}

impl CapacityRule {
    pub(super) fn all(rules: &RuleSet) -> Vec<Self> {
        let gates =
            rules.rules().iter().filter_map(|rule| Some((rule.name(), rule.gate()?.status())));
        let told = |(name, status): (&str, dashpot::GateStatus)| Self {
            rule: name.to_owned(),
            limit: status.limit,
            in_flight: status.in_flight,
            waiting: status.waiting,
        };
        gates.map(told).collect()
    }
}

fn push(service: &Shared, call: &Call) -> Answered {
    admit(service, call)?;
    let Pushed { cpu, errors, slow, lasts, rule: only } = call.json()?;
    let part = |field: &str, told: Option<f64>| match told {
        Some(part) if !(0.0..=1.0).contains(&part) => {
            Err(Wrong::field(field, "a part of the whole, from 0 to 1"))
        }
        part => Ok(part.map(Percent::from_fraction)),
    };
    let vitals = Vitals {
        cpu: part("cpu", cpu)?,
        errors: part("errors", errors)?,
        slow: part("slow", slow)?,
    };
    let lasts = lasts.as_deref().map(limit::time).transpose();
    let lasts = lasts.map_err(|detail| Wrong::field("for", detail))?.unwrap_or(LASTS);
    if lasts > LONGEST {
        return Err(Wrong::field("for", "at most an hour; tell it again before that is over"));
    }
    let rules = service.rules.current();
    let is_meant = |rule: &&Rule| only.as_deref().is_none_or(|only| rule.name() == only);
    let mut told = 0_usize;
    for adaptive in rules.rules().iter().filter(is_meant).filter_map(Rule::adaptive) {
        adaptive.push(vitals, lasts);
        told += 1;
    }
    if only.is_some() && told == 0 {
        return Err(Wrong::field("rule", "no rule of this name adapts"));
    }
    json(StatusCode::OK, &AdaptiveRules { adaptive: AdaptiveRule::all(&rules) })
}
