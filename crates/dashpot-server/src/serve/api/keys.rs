//! `/v1/keys/…`: look at keys, and change what is kept of them.

use std::time::Duration;

use dashpot::{Decision, Key, Policy, Quota, Store};
use dashpot_http::HttpDescriptor;
use dashpot_rules::{Rule, RuleSet, key_values};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admin::admit;
use super::check::{failed, has_rules};
use super::openapi::{self, Documented};
use super::{Answered, Call, Route, json};
use crate::answer::{Answer, OutcomeWord, PolicyAnswer};
use crate::limit::{self, Wish};
use crate::serve::envoy::{self, Limits, json as mapping};
use crate::serve::metrics::{Door, THROTTLE};
use crate::serve::question::{AskedRequest, OneCheck, alone};
use crate::serve::reservation::hex;
use crate::serve::service::{Service, Shared};
use crate::serve::text::{Object, Text};
use crate::serve::wrong::Wrong;

pub(crate) const PEEK: Route = Route {
    method: Method::POST,
    path: "/v1/keys/peek",
    door: Door::Admin,
    handle: |service, call| Box::pin(manage(service, call, Wish::Peek)),
    documented: || documented("How a key stands; takes nothing"),
};

pub(crate) const RESET: Route = Route {
    method: Method::POST,
    path: "/v1/keys/reset",
    door: Door::Admin,
    handle: |service, call| Box::pin(manage(service, call, Wish::Reset)),
    documented: || documented("Forget what was counted; a block stays"),
};

pub(crate) const BLOCK: Route = Route {
    method: Method::POST,
    path: "/v1/keys/block",
    door: Door::Admin,
    handle: |service, call| Box::pin(manage(service, call, Wish::Block(Duration::ZERO))),
    documented: || documented("Deny a key everything `for` some time"),
};

pub(crate) const UNBLOCK: Route = Route {
    method: Method::POST,
    path: "/v1/keys/unblock",
    door: Door::Admin,
    handle: |service, call| Box::pin(manage(service, call, Wish::Unblock)),
    documented: || documented("End a block"),
};

pub(crate) const TOP: Route = Route {
    method: Method::GET,
    path: "/v1/keys/top",
    door: Door::Admin,
    handle: |service, call| Box::pin(async move { top(service, call) }),
    documented: || {
        Documented::new("Who was denied most since the start")
            .query("n", "How many of them; 20 if left out")
            .gives::<TopKeys>(200, "The most denied first")
            .wrong(400, "Another parameter, or no number from 1 to 1000")
            .admin()
    },
};

fn documented(summary: &'static str) -> Documented {
    Documented::new(summary)
        .takes::<Which<'_>>()
        .gives::<Answer<'_>>(200, "How it stands now")
        .wrong(503, "The store does not answer")
        .with(openapi::limited())
        .admin()
}

/// Which key. `key` and `limit`, or `request`, or `descriptor`, or `rule` and `id`; for `CL.THROTTLE`, the rule
/// `(throttle)` and `key` or `id`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which<'a> {
    /// The key, as it was asked about.
    #[serde(borrow)]
    key: Option<Text<'a>>,
    /// The limit, as it was asked about.
    #[serde(borrow)]
    limit: Option<Text<'a>>,
    /// The limit's algorithm.
    #[serde(borrow)]
    algorithm: Option<Text<'a>>,
    /// Places in a leaky bucket's queue.
    queue: Option<u64>,
    /// Places of the queue that proceed at once.
    undelayed: Option<u64>,
    /// Time zone of a fixed window.
    #[serde(borrow)]
    zone: Option<Text<'a>>,
    /// Whatever this request is counted by.
    #[serde(borrow)]
    request: Option<Object<AskedRequest<'a>>>,
    /// Whatever this descriptor of Envoy's is counted by.
    descriptor: Option<Object<Described>>,
    /// In this rule.
    #[serde(borrow)]
    rule: Option<Text<'a>>,
    /// The key, as `top` told it.
    #[serde(borrow)]
    id: Option<Text<'a>>,
    /// How long to block it: 30s, 10min, 1day.
    #[serde(borrow, rename = "for")]
    time: Option<Text<'a>>,
}

/// A descriptor of Envoy's, and its domain.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Described {
    domain: String,
    entries: Vec<Object<mapping::Entry>>,
}

/// One key of one policy.
struct Target {
    policy: Policy,
    /// What the answer calls it.
    name: String,
    key: Vec<u8>,
}

async fn manage(service: &Shared, call: &Call, wish: Wish) -> Answered {
    admit(service, call)?;
    let which: Which<'_> = call.json()?;
    let time = which.time.as_deref().map(limit::time).transpose();
    let time = time.map_err(|detail| Wrong::field("for", detail))?;
    let wish = match (wish, time) {
        (Wish::Block(_), None) => {
            return Err(Wrong::field("for", "missing; say how long, as in \"10min\""));
        }
        (Wish::Block(_), Some(time)) => Wish::Block(time),
        (_, Some(_)) => return Err(Wrong::field("for", "only a block is for some time")),
        (other, None) => other,
    };
    let operation = wish.operation();
    let rules = service.rules.current();
    let targets = targets(service, &rules, which)?;
    let mut answer = Answer::bare(OutcomeWord::Allow);
    for target in &targets {
        let done = service.store.manage(&target.policy, Key::new(&target.key), operation).await;
        let decision: Decision<'_> = done.map_err(|error| failed(&error))?;
        // What stands in for the store is told, too; how it stands there nobody asked.
        let _ = service.local.manage_now(&target.policy, Key::new(&target.key), operation);
        for status in decision.statuses() {
            answer.policies.push(PolicyAnswer::new(status, &target.name));
        }
        if !decision.is_allowed() {
            answer.outcome = OutcomeWord::Deny;
        }
    }
    json(StatusCode::OK, &answer)
}

fn targets(service: &Shared, rules: &RuleSet, which: Which<'_>) -> Result<Vec<Target>, Wrong> {
    let Which { key, limit, algorithm, queue, undelayed, zone, .. } = which;
    let Which { request, descriptor, rule, id, .. } = which;
    let of_limit = [
        ("key", key.is_some()),
        ("limit", limit.is_some()),
        ("algorithm", algorithm.is_some()),
        ("queue", queue.is_some()),
        ("undelayed", undelayed.is_some()),
        ("zone", zone.is_some()),
    ];
    if rule.as_deref() == Some(THROTTLE) {
        let others = [("request", request.is_some()), ("descriptor", descriptor.is_some())];
        alone(of_limit.get(1..).unwrap_or_default(), THROTTLE)?;
        alone(&others, THROTTLE)?;
        return throttled(key.as_deref(), id.as_deref());
    }
    if request.is_some() {
        alone(&of_limit, "request")?;
        let others = [("id", id.is_some()), ("descriptor", descriptor.is_some())];
        alone(&others, "request")?;
    } else if descriptor.is_some() {
        alone(&of_limit, "descriptor")?;
        alone(&[("id", id.is_some()), ("rule", rule.is_some())], "descriptor")?;
    } else if id.is_some() {
        alone(&of_limit, "id")?;
    } else {
        alone(&[("rule", rule.is_some())], "key")?;
    }
    if let Some(Object(Described { domain, entries })) = descriptor {
        let entries = entries.into_iter().map(|Object(entry)| entry.into()).collect();
        let counted = envoy::counted_by(service, domain, entries);
        let counted = counted.map_err(|detail| Wrong::field("descriptor", detail))?;
        let target = |(policy, key): &(Policy, Vec<u8>)| Target::new(policy, Key::new(key));
        return Ok(counted.iter().map(target).collect());
    }
    let envoy = service.envoy.current();
    let rule = rule.map(|name| rule_of(rules, &envoy, &name)).transpose()?;
    if let Some(Object(request)) = request {
        has_rules(rules).map_err(|detail| Wrong::field("request", detail))?;
        let (request, body) = request.build()?;
        let descriptor = HttpDescriptor::new(rules, &request, body.as_ref());
        let plan = rules.select(&descriptor).plan(&descriptor);
        let mut targets = Vec::new();
        for (asked, policies, key) in plan.keys() {
            if rule.is_none_or(|rule| std::ptr::eq(rule, asked)) {
                targets.extend(policies.iter().map(|policy| Target::new(policy, key)));
            }
        }
        if targets.is_empty() {
            return Err(Wrong::field("request", "no such rule counts this request"));
        }
        return Ok(targets);
    }
    if let Some(id) = id {
        let rule =
            rule.ok_or_else(|| Wrong::field("rule", "missing; an `id` belongs to a rule"))?;
        let key = read_id(&id)?;
        let mut targets: Vec<Target> = Vec::new();
        for policy in rule.policies() {
            // Tiers share their counts.
            if !targets.iter().any(|known| known.policy.same_counters(policy)) {
                targets.push(Target::new(policy, Key::new(&key)));
            }
        }
        return Ok(targets);
    }
    let missing = |field: &str| {
        Wrong::field(
            field,
            "missing; say which with `key` and `limit`, with `request`, with `descriptor`, or with `rule` and `id`",
        )
    };
    let key = key.ok_or_else(|| missing("key"))?;
    let limit = limit.ok_or_else(|| missing("limit"))?;
    let one = OneCheck { key, limit, algorithm, queue, undelayed, zone, cost: None }.sound("")?;
    let policy = service.limits.policy(&one.written(), "")?;
    Ok(vec![Target { policy, name: one.key.to_string(), key: one.key.as_bytes().to_vec() }])
}

/// A key of `CL.THROTTLE`. What it was asked about with is nobody's to say: any limit will do.
fn throttled(key: Option<&str>, id: Option<&str>) -> Result<Vec<Target>, Wrong> {
    let key = match (key, id) {
        (Some(key), None) => key.as_bytes().to_vec(),
        (None, Some(id)) => read_id(id)?,
        _ => return Err(Wrong::field("key", "say `key`, or `id` as `top` tells it")),
    };
    let policy = Policy::builder(THROTTLE, Quota::per_second(1)).any_window().build();
    let policy = policy.map_err(|error| Wrong::field("rule", error.to_string()))?;
    Ok(vec![Target { name: policy.name().to_owned(), policy, key }])
}

fn read_id(id: &str) -> Result<Vec<u8>, Wrong> {
    hex::decode(id).ok_or_else(|| Wrong::field("id", "not an id that `top` tells"))
}

impl Target {
    fn new(policy: &Policy, key: Key<'_>) -> Self {
        Self {
            policy: policy.clone(),
            name: policy.name().to_owned(),
            key: key.as_bytes().to_vec(),
        }
    }
}

fn rule_of<'r>(rules: &'r RuleSet, envoy: &'r Limits, name: &str) -> Result<&'r Rule, Wrong> {
    let found = rules.rules().iter().find(|rule| rule.name() == name);
    found.or_else(|| envoy.rules().into_iter().find(|rule| rule.name() == name)).ok_or_else(|| {
        Wrong::field("rule", "there is no rule of this name; GET /v1/rules lists them")
    })
}

/// Who was denied most.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TopKeys {
    pub(crate) keys: Vec<TopKey>,
}

/// Somebody who was denied.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TopKey {
    /// By which rule; none if by a limit made up on the spot.
    pub(crate) rule: Option<String>,
    /// What it is counted by.
    pub(crate) key: Vec<String>,
    /// What to call it when something is to be done with it.
    pub(crate) id: String,
    /// What the log calls it.
    pub(crate) log: String,
    /// How often, at most.
    pub(crate) denied: u64,
    /// How much less it may be.
    pub(crate) error: u64,
}

fn top(service: &Shared, call: &Call) -> Answered {
    admit(service, call)?;
    let query = call.head.uri.query().unwrap_or_default();
    let mut most = 20;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != "n" {
            return Err(Wrong::field(name.as_ref(), "no such parameter; there is `n`"));
        }
        let number = value.parse().ok().filter(|number| (1..=1000).contains(number));
        most = number.ok_or_else(|| Wrong::field("n", "a number from 1 to 1000"))?;
    }
    json(StatusCode::OK, &TopKeys { keys: top_keys(service, most) })
}

/// Those who were denied most often, at most so many.
pub(super) fn top_keys(service: &Service, most: usize) -> Vec<TopKey> {
    let keys = service.top.list(most).into_iter().map(|denied| {
        let log = service.secret.hide(&denied.rule, &denied.key);
        let (times, error) = (denied.times, denied.error);
        if denied.rule.is_empty() {
            let key = String::from_utf8_lossy(&denied.key).into_owned();
            return TopKey {
                rule: None,
                key: vec![key.clone()],
                id: key,
                log,
                denied: times,
                error,
            };
        }
        let key = if denied.rule == THROTTLE {
            vec![String::from_utf8_lossy(&denied.key).into_owned()]
        } else {
            key_values(Key::new(&denied.key))
        };
        TopKey {
            key,
            id: hex::encode(&denied.key),
            rule: Some(denied.rule),
            log,
            denied: times,
            error,
        }
    });
    keys.collect()
}
