//! `POST /v1/check`: may it?

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use dashpot::{Check, Cost, Decision, Store, StoreError};
use dashpot_http::{HttpDescriptor, Wait, headers};
use dashpot_rules::{OnStoreError, Pending, Plan, Refusal, RuleSet, Ruling, Settle};
use http::header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER};
use http::{Method, Response, StatusCode};
use tracing::debug;

use super::openapi::{self, Documented};
use super::{Answered, Call, Route, json};
use crate::answer::{Answer, OutcomeWord, Reason};
use crate::serve::metrics::Door;
use crate::serve::question::{AskedRequest, Form, OneCheck, Question};
use crate::serve::reservation::{How, Part, Taken};
use crate::serve::service::{Service, Shared};
use crate::serve::store::AnyStore;
use crate::serve::wrong::Wrong;

pub(crate) const ROUTE: Route = Route {
    method: Method::POST,
    path: "/v1/check",
    door: Door::Check,
    handle: |service, call| Box::pin(answer(service, call)),
    documented: || {
        Documented::new("May it? About one limit, several at once, or a request by the rules")
            .takes::<Question<'_>>()
            .gives::<Answer<'_>>(200, "Allowed")
            .gives::<Answer<'_>>(429, "Denied")
            .gives::<Answer<'_>>(
                503,
                "The store does not answer, and nothing is let pass without it",
            )
            .with(openapi::limited())
    },
};

async fn answer(service: &Shared, call: &Call) -> Answered {
    let question: Question<'_> = call.json()?;
    let (cost, reserve) = (question.cost, question.reserves());
    match question.form()? {
        Form::One(check) => ask_limits(service, &[check], "", reserve).await,
        Form::Several(checks) => ask_limits(service, &checks, "checks", reserve).await,
        Form::Request(request) => {
            // In a box, or those who ask about limits would carry the room it takes.
            Box::pin(ask_rules(service, &request, cost.unwrap_or(1), reserve)).await
        }
    }
}

/// Asks about limits that were made up on the spot. `list` is what they are in, if they are in one.
async fn ask_limits(
    service: &Shared,
    asked: &[OneCheck<'_>],
    list: &str,
    reserve: bool,
) -> Answered {
    let mut policies = Vec::with_capacity(asked.len());
    for (number, one) in asked.iter().enumerate() {
        let place: Cow<'_, str> =
            if list.is_empty() { "".into() } else { format!("{list}[{number}].").into() };
        let policy = service.limits.policy(&one.written(), &place)?;
        if policy.quota().is_concurrent() && !reserve && one.cost != Some(0) {
            return Err(unreserved());
        }
        policies.push(policy);
    }
    let both = || policies.iter().zip(asked);
    let checks: Vec<Check<'_, '_>> = both()
        .map(|(policy, one)| Check::new(policy, &*one.key).cost(one.cost.unwrap_or(1)))
        .collect();
    if reserve {
        has_room(service)?;
    }
    let rules = service.rules.borrow();
    let on_error = rules.store().on_error;
    // Not to be held while waiting.
    drop(rules);
    let shares;
    let decided = match service.store.decide_at_once(&checks) {
        Some(decided) => decided,
        None => service.store.decide(&checks).await,
    };
    let (decision, local) = match decided {
        Ok(decision) => (decision, false),
        Err(error) => {
            service.counters.ad_hoc.go_without();
            debug!(%error, "the store did not answer");
            match on_error {
                OnStoreError::Allow => {
                    let answer = Answer { degraded: true, ..Answer::bare(OutcomeWord::Allow) };
                    return json(StatusCode::OK, &answer);
                }
                OnStoreError::Deny => return unavailable(None),
                OnStoreError::Local => {
                    let instances = service.store.instances();
                    shares = policies.iter().map(|one| one.share(instances)).collect::<Vec<_>>();
                    (service.decide_locally(&checks, &shares), true)
                }
            }
        }
    };
    let mut answer = Answer::of(&decision, asked.iter().map(|one| &*one.key));
    if decision.is_allowed() {
        // Who only looks is not counted.
        if checks.iter().any(|check| check.cost != Cost::PEEK) {
            service.counters.ad_hoc.allow(decision.statuses());
        }
        if reserve {
            let mut taken = Vec::new();
            for check in checks.iter().filter(|check| check.cost != Cost::PEEK) {
                if let Some(reservation) = check.reservation(&decision) {
                    let how = if reservation.is_permit() { How::Release } else { How::Used };
                    taken.push(Part::new(&reservation, how, local));
                }
            }
            answer.reservation = give_out(service, taken);
        }
    } else {
        service.counters.ad_hoc.deny();
        for (status, check) in decision.statuses().iter().zip(&checks) {
            if status.is_denied() {
                service.note_one("", check.key);
            }
        }
    }
    let rules = service.rules.borrow();
    // They share a name, so the headers are about one of them: the one that matters.
    match headers::governing(decision.statuses()).filter(|_| checks.len() > 1) {
        Some(one) => tell(&answer, Some(&Decision::new(decision.at(), [*one])), &rules),
        None => tell(&answer, Some(&decision), &rules),
    }
}

/// Asks about a request, by the rules.
async fn ask_rules(
    service: &Shared,
    asked: &AskedRequest<'_>,
    times: u64,
    reserve: bool,
) -> Answered {
    let rules = service.rules.current();
    has_rules(&rules).map_err(|detail| Wrong::field("request", detail))?;
    let (request, body) = asked.build()?;
    let descriptor = HttpDescriptor::new(&rules, &request, body.as_ref());
    let plan = rules.select(&descriptor).plan(&descriptor).times(times);
    let holds = plan.keys().any(|(rule, _, _)| *rule.settle() == Settle::Release);
    if holds && !reserve && times > 0 {
        return Err(unreserved());
    }
    if reserve {
        has_room(service)?;
    }
    let mut ruling = service.decide(&plan).await;
    let refusal = ruling.refusal();
    let mut answer = match ruling.decision() {
        Some(decision) => {
            Answer::of(decision, decision.statuses().iter().map(|status| status.policy().name()))
        }
        None => Answer::bare(OutcomeWord::Allow),
    };
    answer.degraded |= ruling.is_degraded();
    let pending = ruling.take_pending();
    match refusal {
        Some(refusal) => {
            service.note_denied(&plan, &ruling);
            answer.outcome = OutcomeWord::Deny;
            let (reason, rule) = match refusal {
                Refusal::Limited(rule) => (Reason::Limited, Some(rule)),
                Refusal::Absent(rule) => (Reason::Absent, Some(rule)),
                Refusal::Unavailable(rule) => (Reason::Unavailable, Some(rule)),
                Refusal::Blocked(_) => (Reason::Blocked, None),
            };
            (answer.reason, answer.rule) = (Some(reason), rule.map(|rule| rule.name().into()));
        }
        None if reserve && times > 0 => {
            answer.reservation = give_out(service, taken(&plan, &ruling, pending));
        }
        None => {}
    }
    tell(&answer, ruling.decision(), &rules)
}

/// What is to be settled: by the rules that say how; if none does, by all. What others took stays, unless nothing
/// was used.
fn taken<'r>(plan: &Plan<'r>, ruling: &Ruling<'r>, pending: Vec<Pending<'_>>) -> Vec<Part> {
    let part = |one: &Pending<'_>| {
        let how = match one.rule.settle() {
            // A rule may have rates beside its permits.
            Settle::Release if !one.reservation.is_permit() => How::Whole,
            settle => settle.into(),
        };
        Part::new(&one.reservation, how, one.local)
    };
    let mut parts: Vec<Part> = pending.iter().map(part).collect();
    // What was granted without the store is not the store's to give back.
    if !ruling.is_degraded() {
        let how = if parts.is_empty() { How::Used } else { How::Whole };
        let others = plan.taken(ruling, NonZeroU64::MIN);
        parts.extend(others.iter().map(|one| Part::new(&one.reservation, how, false)));
    }
    parts
}

/// Makes a reservation of what was taken, if anything was.
fn give_out(service: &Service, parts: Vec<Part>) -> Option<String> {
    if parts.is_empty() {
        return None;
    }
    let in_memory = matches!(service.store, AnyStore::Memory(_));
    let parts = parts.into_iter().map(|part| if in_memory { part.in_memory() } else { part });
    let taken = Arc::new(Taken::new(parts.collect(), service.process, service.outstanding.ttl()));
    let text = taken.seal(&service.secret);
    if taken.has_permits() {
        service.outstanding.give_out(taken);
    }
    Some(text)
}

fn has_room(service: &Service) -> Result<(), Wrong> {
    if service.outstanding.has_room() {
        return Ok(());
    }
    let detail =
        "too many reservations with permits are not settled; settle some, or wait until they lapse";
    Err(Wrong::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        .with(RETRY_AFTER, HeaderValue::from_static("1")))
}

fn unreserved() -> Wrong {
    let detail = "a permit of `concurrency` is taken until it is settled: ask with \"reserve\":true, and settle with the \
                  reservation you get";
    Wrong::field("reserve", detail)
}

/// Whether there are rules to ask.
pub(super) fn has_rules(rules: &RuleSet) -> Result<(), &'static str> {
    if rules.is_empty() {
        return Err("there are no rules; start with `dashpot serve --config dashpot.toml`");
    }
    Ok(())
}

fn unavailable(rule: Option<&str>) -> Answered {
    let reason = Some(Reason::Unavailable);
    let answer = Answer {
        reason,
        rule: rule.map(Into::into),
        degraded: true,
        ..Answer::bare(OutcomeWord::Deny)
    };
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, &answer)?;
    no_store(&mut response);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    Ok(response)
}

fn no_store<B>(response: &mut Response<B>) {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Answers, with the headers that tell how the caller stands.
fn tell(answer: &Answer<'_>, decision: Option<&Decision<'_>>, rules: &RuleSet) -> Answered {
    if answer.reason == Some(Reason::Unavailable) {
        return unavailable(answer.rule.as_deref());
    }
    let denied = answer.outcome == OutcomeWord::Deny;
    let mut response =
        json(if denied { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK }, answer)?;
    if denied {
        no_store(&mut response);
    }
    if let Some(decision) = decision {
        let jitter = if denied { rules.headers().jitter } else { Duration::ZERO };
        let wait = Wait::of(decision, jitter);
        headers::describe(decision, &wait, rules.headers(), response.headers_mut());
        if let Some(seconds) = wait.seconds() {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
    Ok(response)
}

/// The store could not answer, and that is all there is to say.
pub(super) fn failed(error: &StoreError) -> Wrong {
    debug!(%error, "the store did not answer");
    Wrong::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        .with(RETRY_AFTER, HeaderValue::from_static("1"))
}
