//! `/v1/rules…`: the rules in use.

use std::collections::BTreeMap;
use std::path::Path;

use dashpot_http::HttpDescriptor;
use dashpot_rules::{Explanation, LoadError, Rule, RuleSet, Source, diff};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admin::admit;
use super::openapi::{self, Documented};
use super::{Answered, Call, Route, json};
use crate::serve::metrics::Door;
use crate::serve::question::AskedRequest;
use crate::serve::service::Shared;
use crate::serve::text::Object;
use crate::serve::wrong::Wrong;

pub(crate) const LIST: Route = Route {
    method: Method::GET,
    path: "/v1/rules",
    door: Door::Admin,
    handle: |service, call| Box::pin(async move { list(service, call) }),
    documented: || {
        Documented::new("The rules in use, and what came of them")
            .gives::<ActiveRules>(200, "The rules")
            .admin()
    },
};

pub(crate) const RELOAD: Route = Route {
    method: Method::POST,
    path: "/v1/rules/reload",
    door: Door::Admin,
    handle: |service, call| Box::pin(reload(service, call)),
    documented: || {
        Documented::new("Read the rule file again, now")
            .gives::<Changes>(200, "What is different")
            .wrong(400, "The file is wrong; the last good rules stay")
            .admin()
    },
};

pub(crate) const DIFF: Route = Route {
    method: Method::POST,
    path: "/v1/rules/diff",
    door: Door::Admin,
    handle: |service, call| Box::pin(compare(service, call)),
    documented: || {
        Documented::new("What would change with these rules; nothing does")
            .takes_text("application/toml")
            .gives::<Changes>(200, "What would be different")
            .with(openapi::limited())
            .admin()
    },
};

pub(crate) const EXPLAIN: Route = Route {
    method: Method::POST,
    path: "/v1/rules/explain",
    door: Door::Admin,
    handle: |service, call| Box::pin(async move { explain(service, call) }),
    documented: || {
        Documented::new("What a request would be held to, and why; takes nothing")
            .takes::<Explaining<'_>>()
            .gives::<Explained>(200, "Why")
            .with(openapi::limited())
            .admin()
    },
};

/// The rules in use.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ActiveRules {
    /// How many sets of rules there have been.
    pub(crate) generation: u64,
    /// The file they are read from.
    pub(crate) file: Option<String>,
    pub(crate) rules: Vec<ActiveRule>,
    /// What is probably not meant as it is written.
    pub(crate) advice: Vec<String>,
}

/// A rule, and what came of it since it was first loaded.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ActiveRule {
    pub(crate) name: String,
    /// What it says, item by item.
    pub(crate) says: BTreeMap<String, String>,
    pub(crate) allowed: u64,
    pub(crate) near_limit: u64,
    pub(crate) denied: u64,
    pub(crate) shadow_denied: u64,
    pub(crate) degraded: u64,
}

/// What is different.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Changes {
    /// How many sets of rules there have been.
    pub(crate) generation: u64,
    /// In words, a line each.
    pub(crate) changes: Vec<String>,
}

/// The request to explain.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Explaining<'a> {
    #[serde(borrow)]
    request: Object<AskedRequest<'a>>,
}

/// What a request would be held to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Explained {
    /// Why no limit matters, if none does.
    pub(crate) verdict: Option<String>,
    /// The priority that counts.
    pub(crate) priority: Option<String>,
    pub(crate) facts: Vec<ExplainedFact>,
    pub(crate) rules: Vec<ExplainedRule>,
    /// All of it, for people.
    pub(crate) text: String,
}

/// A fact, and why it is so.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExplainedFact {
    fact: String,
    value: Option<String>,
    why: String,
}

/// A rule that matches.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExplainedRule {
    name: String,
    matches: String,
    /// What it counts by; nothing if it is not asked.
    key: Option<Vec<String>>,
    policies: Vec<String>,
    enforced: bool,
}

fn list(service: &Shared, call: &Call) -> Answered {
    admit(service, call)?;
    let rules = service.rules.current();
    let active = |rule: &Rule| ActiveRule {
        name: rule.name().to_owned(),
        says: rule.summary().into_iter().map(|(item, text)| (item.to_owned(), text)).collect(),
        allowed: rule.tally().allowed(),
        near_limit: rule.tally().near_limit(),
        denied: rule.tally().denied(),
        shadow_denied: rule.tally().would_have_denied(),
        degraded: rule.tally().degraded(),
    };
    let answer = ActiveRules {
        generation: service.rules.generation(),
        file: service.file.as_ref().map(|file| file.display().to_string()),
        rules: { rules.rules().iter().map(active) }
            .chain(service.envoy.current().rules().into_iter().map(|rule| {
                let mut active = active(rule);
                // A rule says how it is found and what it counts by; of these, the YAML does.
                let limits: Vec<_> =
                    rule.policies().map(|policy| policy.quota().to_string()).collect();
                let algorithms = rule.policies().map(|policy| policy.algorithm().to_string());
                active.says.insert("match".to_owned(), "descriptors of the YAML".to_owned());
                active.says.insert("by".to_owned(), "entries".to_owned());
                active.says.insert("limits".to_owned(), limits.join("; "));
                active.says.extend(algorithms.map(|word| ("algorithm".to_owned(), word)));
                active
            }))
            .collect(),
        advice: rules.advice().iter().map(ToString::to_string).collect(),
    };
    json(StatusCode::OK, &answer)
}

async fn reload(service: &Shared, call: &Call) -> Answered {
    admit(service, call)?;
    let reading = service.clone();
    // Files may be long, or far away.
    let read = move || (reading.reload(), reading.reload_envoy());
    let reloaded = tokio::task::spawn_blocking(read).await;
    match reloaded {
        Ok((Some(Ok(_)) | None, Err(problems))) => {
            Err(Wrong::new(StatusCode::BAD_REQUEST, problems.to_string()))
        }
        Ok((Some(Ok(reload)), Ok(()))) => {
            let answer = Changes { generation: reload.generation, changes: reload.changes };
            json(StatusCode::OK, &answer)
        }
        Ok((Some(Err(error)), _)) => Err(unfit(&error)),
        Ok((None, Ok(()))) if service.envoy.place().is_some() => {
            let generation = service.rules.generation();
            json(StatusCode::OK, &Changes { generation, changes: Vec::new() })
        }
        Ok((None, Ok(()))) => {
            Err(Wrong::new(StatusCode::BAD_REQUEST, "there is no rule file; start with --config"))
        }
        Err(error) => Err(Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

async fn compare(service: &Shared, call: &Call) -> Answered {
    admit(service, call)?;
    let text = str::from_utf8(&call.body)
        .map_err(|_| Wrong::new(StatusCode::BAD_REQUEST, "a rule file is UTF-8"))?;
    let directory = service.file.as_deref().map(directory).unwrap_or(Path::new(".")).to_owned();
    let source = Source::new("body", text);
    // It may name files.
    let read =
        tokio::task::spawn_blocking(move || RuleSet::from_sources(vec![source], &directory)).await;
    let read =
        read.map_err(|error| Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let after = read.map_err(|errors| unfit(&errors.into()))?;
    let changes = diff(&service.rules.current(), &after);
    json(StatusCode::OK, &Changes { generation: service.rules.generation(), changes })
}

/// Where files that a rule file names are looked for.
fn directory(file: &Path) -> &Path {
    if file.is_dir() { file } else { file.parent().unwrap_or(Path::new(".")) }
}

fn unfit(error: &LoadError) -> Wrong {
    Wrong::new(StatusCode::BAD_REQUEST, error.to_string())
}

fn explain(service: &Shared, call: &Call) -> Answered {
    admit(service, call)?;
    let asked: Explaining<'_> = call.json()?;
    let (request, body) = asked.request.0.build()?;
    let rules = service.rules.current();
    let descriptor = HttpDescriptor::new(&rules, &request, body.as_ref());
    json(StatusCode::OK, &Explained::from(rules.explain(&descriptor)))
}

impl From<Explanation> for Explained {
    fn from(explanation: Explanation) -> Self {
        let text = explanation.to_string();
        Self {
            text,
            verdict: explanation.verdict,
            priority: explanation.priority.map(|(name, _)| name),
            facts: { explanation.facts.into_iter() }
                .map(|fact| ExplainedFact {
                    fact: fact.fact.to_string(),
                    value: fact.value,
                    why: fact.why,
                })
                .collect(),
            rules: { explanation.rules.into_iter() }
                .map(|rule| ExplainedRule {
                    name: rule.name,
                    matches: rule.matches,
                    key: rule.key,
                    policies: rule.policies,
                    enforced: rule.enforced,
                })
                .collect(),
        }
    }
}
