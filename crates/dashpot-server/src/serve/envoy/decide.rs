//! From plans to how each descriptor stands.

use dashpot::{Check, Cost, Outcome, PolicyStatus, Reservation, Retry, Timestamp};
use dashpot_rules::{Asked, Plan, Refusal, Ruling};
use smallvec::SmallVec;

use super::Fault;
use super::message::RateLimitRequest;
use super::question::{Hits, Part, Places};
use crate::serve::service::Service;

/// How a descriptor stands.
#[derive(Debug, Default)]
pub(super) struct Outcomes<'r> {
    pub(super) is_over: bool,
    /// Of all policies that were asked, those that only count included.
    pub(super) statuses: Statuses<'r>,
}

/// How policies stand: mostly one.
pub(super) type Statuses<'r> = SmallVec<[PolicyStatus<'r>; 1]>;

/// How a call stands.
#[derive(Debug)]
pub(super) struct Decided<'r> {
    pub(super) at: Timestamp,
    /// One for each descriptor.
    pub(super) outcomes: SmallVec<[Outcomes<'r>; 1]>,
    /// What is enforced, all of it.
    pub(super) enforced: Statuses<'r>,
    /// Whether the store did not answer, and something else did.
    is_degraded: bool,
}

impl<'r> Decided<'r> {
    fn new(at: Timestamp) -> Self {
        Self { at, outcomes: SmallVec::new(), enforced: SmallVec::new(), is_degraded: false }
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcomes.iter().any(|one| one.is_over)
    }

    /// What was denied stays so, and is told how it stands after something was taken all the same.
    fn now_as(&mut self, after: &Self) {
        let later = |statuses: &mut Statuses<'r>, after: &[PolicyStatus<'r>]| {
            for (status, after) in statuses.iter_mut().zip(after) {
                *status = match status.outcome() {
                    Outcome::Allow => *after,
                    // Until all is as it was: enough for any cost that can pass.
                    Outcome::Deny if status.is_never() => denied(after, Retry::Never),
                    Outcome::Deny => {
                        denied(after, Retry::After(after.standing().reset_after_nanos))
                    }
                };
            }
        };
        for (own, after) in self.outcomes.iter_mut().zip(&after.outcomes) {
            later(&mut own.statuses, &after.statuses);
        }
        later(&mut self.enforced, &after.enforced);
    }
}

/// [`together`], if the store has the answer at once, and nothing is looked at or given back. Else nothing was asked.
pub(super) fn at_once<'r>(
    service: &Service,
    request: &RateLimitRequest,
    parts: &[Part<'r>],
) -> Option<Result<Decided<'r>, Fault>> {
    if parts.iter().any(|part| !matches!(part.hits, Hits::Take(_))) {
        return None;
    }
    let mut plan = Plan::empty();
    let places = ask(request, parts, &mut plan);
    let mut ruling = Ruling::default();
    if !plan.decide_at_once(&service.store, &service.local, &mut ruling) {
        return None;
    }
    let answer = is_answer(&ruling).map(|()| {
        service.note_denied(&plan, &ruling);
        stand(parts, &places, &plan, &ruling)
    });
    Some(answer)
}

/// Asks the store: all descriptors pass together, or none is counted.
pub(super) async fn together<'r>(
    service: &Service,
    request: &RateLimitRequest,
    parts: &[Part<'r>],
) -> Result<Decided<'r>, Fault> {
    let mut plan = Plan::empty();
    let places = ask(request, parts, &mut plan);
    let looks = parts.iter().any(|part| part.hits == Hits::Look);
    if looks {
        // What has nothing left denies what would be taken beside it. So it is looked at first.
        let first = plan.clone().times(0);
        let ruling = decide(service, &first).await?;
        let known = stand(parts, &places, &first, &ruling);
        if known.is_over() || parts.iter().all(|part| part.hits.times() == 0) {
            return give_back(service, request, parts, known).await;
        }
    }
    let ruling = decide(service, &plan).await?;
    service.note_denied(&plan, &ruling);
    let known = stand(parts, &places, &plan, &ruling);
    give_back(service, request, parts, known).await
}

/// Asks the store about one descriptor after another; what is denied is counted, too.
pub(super) async fn one_by_one<'r>(
    service: &Service,
    request: &RateLimitRequest,
    parts: &[Part<'r>],
) -> Result<Decided<'r>, Fault> {
    let mut all = Decided::new(Timestamp::default());
    for (part, descriptor) in parts.iter().zip(&request.descriptors) {
        let request = &RateLimitRequest {
            domain: request.domain.clone(),
            descriptors: vec![descriptor.clone()],
            hits_addend: 0,
        };
        let part = std::slice::from_ref(part);
        let mut plan = Plan::empty();
        let places = ask(request, part, &mut plan);
        let ruling = decide(service, &plan).await?;
        service.note_denied(&plan, &ruling);
        let mut own = stand(part, &places, &plan, &ruling);
        let untaken = untaken(&plan, &ruling);
        if !untaken.is_empty() {
            for check in &untaken {
                // As if it had passed: more than there is can be taken after the fact.
                settle(service, check, Cost::PEEK, check.cost, &own).await;
            }
            let looked = plan.clone().times(0);
            let ruling = decide(service, &looked).await?;
            own.now_as(&stand(part, &places, &looked, &ruling));
        }
        own = give_back(service, request, part, own).await?;
        all.at = all.at.max(own.at);
        all.outcomes.append(&mut own.outcomes);
        all.enforced.append(&mut own.enforced);
    }
    Ok(all)
}

/// What was asked for and not taken, because something denied it.
fn untaken<'r, 'p>(plan: &'p Plan<'r>, ruling: &Ruling<'r>) -> Vec<Check<'r, 'p>> {
    if ruling.decision().is_some_and(|decision| !decision.is_allowed()) {
        // Those that only count are not asked then.
        return plan.checks().chain(plan.shadow_checks()).collect();
    }
    let mut untaken = Vec::new();
    let mut checks = plan.shadow_checks();
    for Asked { statuses, .. } in plan.asked(ruling).iter().filter(|one| !one.enforced) {
        let own = checks.by_ref().take(statuses.len());
        if statuses.iter().any(PolicyStatus::is_denied) {
            untaken.extend(own);
        } else {
            own.for_each(drop);
        }
    }
    untaken
}

/// Adds all questions to a plan. Tells where each descriptor's are.
fn ask<'r>(
    request: &RateLimitRequest,
    parts: &[Part<'r>],
    plan: &mut Plan<'r>,
) -> SmallVec<[Places; 2]> {
    let both = parts.iter().zip(&request.descriptors);
    both.map(|(part, descriptor)| part.ask(&request.domain, descriptor, plan, part.hits.times()))
        .collect()
}

async fn decide<'r>(service: &Service, plan: &Plan<'r>) -> Result<Ruling<'r>, Fault> {
    let ruling = service.decide(plan).await;
    is_answer(&ruling)?;
    Ok(ruling)
}

/// Whether there is one.
fn is_answer(ruling: &Ruling<'_>) -> Result<(), Fault> {
    match ruling.refusal() {
        Some(Refusal::Unavailable(rule)) => Err(Fault::Unavailable(format!(
            "the store does not answer, and {} lets nothing pass without it",
            rule.name()
        ))),
        _ => Ok(()),
    }
}

/// How each descriptor stands.
fn stand<'r>(
    parts: &[Part<'r>],
    places: &[Places],
    plan: &Plan<'r>,
    ruling: &Ruling<'r>,
) -> Decided<'r> {
    let asked = plan.asked(ruling);
    let mut all = Decided::new(Timestamp::default());
    all.is_degraded = ruling.is_degraded();
    for (part, places) in parts.iter().zip(places) {
        let mut own = Outcomes { is_over: part.refusal().is_some(), statuses: Statuses::new() };
        for Asked { enforced, statuses, at, .. } in
            places.iter().filter_map(|place| asked.get(*place))
        {
            all.at = all.at.max(*at);
            for status in *statuses {
                let status = match part.hits {
                    Hits::Look => as_look(status),
                    Hits::Take(_) | Hits::GiveBack(_) => *status,
                };
                own.is_over |= *enforced && status.is_denied();
                own.statuses.push(status);
                if *enforced {
                    all.enforced.push(status);
                }
            }
        }
        all.outcomes.push(own);
    }
    all
}

/// A look is denied what nobody could take.
fn as_look<'p>(status: &PolicyStatus<'p>) -> PolicyStatus<'p> {
    if status.remaining() > 0 || status.is_denied() {
        return *status;
    }
    let retry = match status.standing().available_after_nanos {
        _ if status.limit() == 0 => Retry::Never,
        Some(nanos) => Retry::After(nanos),
        None => Retry::Unknown,
    };
    denied(status, retry)
}

/// The same standing, denied.
fn denied<'p>(status: &PolicyStatus<'p>, retry: Retry) -> PolicyStatus<'p> {
    PolicyStatus::deny(status.policy(), status.standing(), retry)
}

/// Gives back what was taken too much, if the call passes: as it would have been taken.
async fn give_back<'r>(
    service: &Service,
    request: &RateLimitRequest,
    parts: &[Part<'r>],
    mut known: Decided<'r>,
) -> Result<Decided<'r>, Fault> {
    if known.is_over() || !parts.iter().any(Part::gives_back) {
        return Ok(known);
    }
    let mut plan = Plan::empty();
    let both = parts.iter().zip(&request.descriptors);
    let places: SmallVec<[Places; 2]> = both
        .map(|(part, descriptor)| match part.hits {
            Hits::GiveBack(count) => part.ask(&request.domain, descriptor, &mut plan, count),
            Hits::Look | Hits::Take(_) => Places::new(),
        })
        .collect();
    for check in plan.checks().chain(plan.shadow_checks()) {
        // At what factor it was taken nobody knows: it cost at least as much as of the whole.
        let whole = check.policy.reduced_to(100);
        let check = Check::new(&whole, check.key).cost(check.cost);
        settle(service, &check, check.cost, Cost::PEEK, &known).await;
    }
    let looked = plan.clone().times(0);
    let ruling = decide(service, &looked).await?;
    let after = stand(parts, &places, &looked, &ruling);
    for ((part, own), after) in parts.iter().zip(&mut known.outcomes).zip(after.outcomes) {
        if part.gives_back() {
            own.statuses = after.statuses;
        }
    }
    Ok(known)
}

/// Makes what was charged what was used, when that was decided.
async fn settle(
    service: &Service,
    check: &Check<'_, '_>,
    charged: Cost,
    used: Cost,
    decided: &Decided<'_>,
) {
    if charged == used {
        return;
    }
    let reservation = Reservation::new(check.policy.clone(), check.key, charged, decided.at);
    // What fails is logged there, and nobody can do anything about it here.
    let _ = service.settle(&reservation, decided.is_degraded, used).await;
}
