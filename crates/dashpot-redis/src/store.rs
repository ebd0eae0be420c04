//! The store itself.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use dashpot::{
    Algorithm, Check, Cost, Decision, Key, KeyOperation, Policy, PolicyStatus, Receipt,
    Reservation, Store, StoreError, Timestamp,
};
use redis::Value;
use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::denials::Denials;
use crate::failure::Failure;
use crate::instances::Instances;
use crate::key::state_key;
use crate::lease::{Leases, is_exact};
use crate::permits::Permits;
use crate::question::{self, Deed, Question, Questions, Settling};
use crate::recall::{Answer, Came, Recalled, head};
use crate::renewal::{Owed, Returning};
use crate::script;
use crate::settings::Settings;
use crate::topology::{Spot, Topology};

/// How often a call is made again because a calendar has come to another window than expected.
pub(crate) const GUESSES: usize = 4;

/// State on Redis or Valkey, by its clock: the same limits for everybody who asks there.
///
/// One script call decides all checks of a request, all or nothing. Calls of concurrent tasks share a
/// connection. Clones share everything. See the [crate] for what it promises, and what happens when
/// Redis does not answer.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) settings: Arc<Settings>,
    pub(crate) topology: Topology,
    pub(crate) permits: Permits,
    pub(crate) returning: Returning,
    pub(crate) instances: Instances,
    pub(crate) is_instance: bool,
    pub(crate) denials: Denials,
    pub(crate) leases: Leases,
    /// How far the server's clock is ahead of this one, in nanoseconds, as far as is known.
    ahead: AtomicI64,
}

impl Inner {
    pub(crate) fn new(
        settings: Arc<Settings>,
        topology: Topology,
        is_instance: bool,
        runtime: Handle,
    ) -> Self {
        Self {
            leases: Leases::new(&settings, runtime),
            denials: Denials::new(settings.denial_memory),
            topology,
            permits: Permits::default(),
            returning: Returning::default(),
            instances: Instances::new(settings.least_instances),
            is_instance,
            settings,
            ahead: AtomicI64::new(0),
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.deadline
    }

    /// About what the server's clock shows.
    pub(crate) fn around(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let nanos = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        let nanos = nanos.saturating_add(self.ahead.load(Ordering::Relaxed));
        Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }

    /// Learns what the server's clock shows.
    pub(crate) fn learn(&self, now: Timestamp) {
        let ahead = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let known = i64::try_from(self.around().as_nanos()).unwrap_or(i64::MAX);
        let before = self.ahead.load(Ordering::Relaxed);
        self.ahead.store(before.saturating_add(ahead.saturating_sub(known)), Ordering::Relaxed);
    }

    /// Asks about keys that are in one spot. Their costs are taken if all pass, unless it is only to look.
    pub(crate) async fn ask(
        &self,
        spot: Spot,
        questions: &[&Question<'_>],
        taking: bool,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let lease = u64::try_from(self.settings.permit_lease.as_micros()).unwrap_or(u64::MAX);
        // What can never be granted is not worth asking for, and then nothing is taken.
        let taking = taking && !questions.iter().any(|question| question.is_never());
        for _ in 0..GUESSES {
            let keys = questions.iter().map(|question| question.key.as_slice());
            let mut call = script::DECIDE.call(keys);
            call.arg(u8::from(taking));
            for question in questions {
                let cost = if question.is_never() { 0 } else { question.cost };
                question.ask((cost, 0), self.around(), lease, &mut call);
            }
            // If nobody hears the answer, permits may be out that nobody holds.
            let owed = Owed::permits(self, questions, taking);
            let value = match self.topology.call(spot, &call, deadline).await {
                Err(failure @ Failure::Down(_)) => {
                    owed.settled();
                    return Err(failure);
                }
                value => value?,
            };
            let answer = Answer::read(&value, questions)?;
            owed.settled();
            if answer.came != Came::Elsewhen {
                return Ok(answer);
            }
            self.learn(answer.now);
        }
        Err(Failure::Odd("the server's clock jumps about"))
    }

    async fn decide<'p>(
        self: &Arc<Self>,
        checks: &[Check<'p, '_>],
    ) -> Result<Decision<'p>, StoreError> {
        if checks.iter().all(|check| is_exact(check.policy)) {
            return self.decide_exactly(checks).await;
        }
        self.decide_with_leases(checks).await
    }

    /// Decides by asking Redis about everything.
    pub(crate) async fn decide_exactly<'p>(
        self: &Arc<Self>,
        checks: &[Check<'p, '_>],
    ) -> Result<Decision<'p>, StoreError> {
        let questions = Questions::new(&self.settings.prefix, checks)?;
        if questions.all.is_empty() {
            return Ok(Decision::new(self.around(), []));
        }
        if let Some((now, recalled)) = self.denials.recall(&questions.all) {
            let repeated = decision(now, checks, &questions, &recalled, false, |_| now);
            // Nothing is ever allowed without asking.
            if !repeated.is_allowed() {
                return Ok(repeated);
            }
        }
        let (deadline, ticket) = (self.deadline(), self.denials.ticket(&questions.all));
        let taking = questions.all.iter().any(|question| question.cost > 0)
            && !questions.all.iter().any(Question::is_never);
        let spots: SmallVec<[Spot; 4]> =
            questions.all.iter().map(|question| self.topology.spot(&question.key)).collect();
        let together = spots.iter().all(|spot| Some(spot) == spots.first());
        match spots.first() {
            Some(&spot) if together => {
                let asked: SmallVec<[&Question<'_>; 4]> = questions.all.iter().collect();
                let answer = self.ask(spot, &asked, taking, deadline).await?;
                let allowed = if taking {
                    answer.came == Came::Taken
                } else {
                    self.passes(&questions, &answer.states, answer.now)
                };
                let now = answer.now;
                let decided = decision(now, checks, &questions, &answer.states, allowed, |_| now);
                if decided.is_allowed() != allowed {
                    return Err(Failure::Odd("a script decided otherwise").into());
                }
                if allowed && taking {
                    questions.all.iter().for_each(|question| self.note(question));
                } else if !allowed {
                    let answers = answer.states.iter().map(|state| (state, answer.now));
                    self.denials.remember(&questions.all, answers, ticket);
                }
                Ok(self.with_receipts(decided, checks, &questions, |_| answer.now))
            }
            _ => self.decide_apart(checks, &questions, &spots, taking, (deadline, ticket)).await,
        }
    }

    /// Does not repeat a denial about this key.
    pub(crate) fn forget(&self, key: &[u8]) {
        self.denials.forget(key);
    }

    fn passes(&self, questions: &Questions<'_>, states: &[Recalled], now: Timestamp) -> bool {
        let mut each = questions.all.iter().zip(states);
        each.all(|(question, state)| passes(question, state, now))
    }

    /// Notes that a question's cost was taken.
    pub(crate) fn note(&self, question: &Question<'_>) {
        self.denials.outdate(&question.key);
        if let Some(permit) = &question.permit {
            self.permits.hold(&question.key, permit);
        }
    }

    /// Adds what a reservation has to know that the decision does not say.
    pub(crate) fn with_receipts<'p>(
        &self,
        decided: Decision<'p>,
        checks: &[Check<'p, '_>],
        questions: &Questions<'p>,
        at: impl Fn(usize) -> Timestamp,
    ) -> Decision<'p> {
        let receipt = |(check, &member): (&Check<'p, '_>, &usize)| {
            let permit =
                questions.all.get(member)?.permit.as_ref().map_or(0, |permit| permit.number);
            let at = at(member);
            (permit != 0 || at != decided.at()).then(|| Receipt {
                policy: check.policy.clone(),
                key: check.key.as_bytes().into(),
                at,
                permit,
            })
        };
        if !decided.is_allowed() {
            return decided;
        }
        let receipts: Vec<_> = checks.iter().zip(&questions.members).filter_map(receipt).collect();
        if receipts.is_empty() { decided } else { decided.with_receipts(receipts) }
    }

    async fn settle(&self, reservation: &Reservation, used: Cost) -> Result<Timestamp, StoreError> {
        let (cost, used) = (reservation.cost().units(), used.units());
        let (deed, units) = match reservation.policy().algorithm() {
            Algorithm::Concurrency => (Deed::Back, cost),
            _ if used > cost => (Deed::Charge, used - cost),
            _ => (Deed::Back, cost - used),
        };
        self.carry_out(reservation, deed, units).await
    }

    async fn undo(&self, reservation: &Reservation) -> Result<Timestamp, StoreError> {
        self.carry_out(reservation, Deed::Undo, reservation.cost().units()).await
    }

    /// Gives units of a reservation back, to what is at hand or to Redis, or charges them there.
    async fn carry_out(
        &self,
        reservation: &Reservation,
        deed: Deed,
        units: u64,
    ) -> Result<Timestamp, StoreError> {
        let policy = reservation.policy();
        policy.fits_micros()?;
        let is_permit = policy.algorithm() == Algorithm::Concurrency;
        let part = is_permit.then(|| self.permits.claim(reservation.permit(), units));
        let key = state_key(&self.settings.prefix, policy, reservation.key());
        let charged_at = reservation.charged_at();
        let units = match deed {
            // What has drained since is not known here, but there.
            Deed::Undo if policy.rate().is_some() => units,
            Deed::Back | Deed::Undo => {
                on_runtime()?;
                let what = (units, charged_at);
                units - self.take_back(&key, what, self.deadline()).await
            }
            Deed::Charge => units,
        };
        if units == 0 {
            return Ok(self.around());
        }
        let what = Settling { policy, deed, charged_at, units };
        self.settle_units(&key, &what, part.as_deref(), self.deadline()).await.map_err(Into::into)
    }

    /// Gives units back, or charges them.
    pub(crate) async fn settle_units(
        &self,
        key: &[u8],
        what: &Settling<'_>,
        part: Option<&str>,
        deadline: Instant,
    ) -> Result<Timestamp, Failure> {
        for _ in 0..GUESSES {
            let mut call = script::SETTLE.call(std::iter::once(key));
            let around = self.around();
            if !what.tell(part, around, &mut call) {
                return Ok(around);
            }
            let spot = self.topology.spot(key);
            // A permit that cannot be given back now is given back later.
            let owed = Owed::new(self, part.map(|_| (key.to_owned(), call.clone())));
            on_runtime()?;
            let value = self.topology.call(spot, &call, deadline).await?;
            let (now, came, _) = head(&value).ok_or(Failure::Odd("the answer of a script"))?;
            owed.settled();
            if came != Came::Elsewhen {
                self.denials.forget(key);
                return Ok(now);
            }
            self.learn(now);
        }
        Err(Failure::Odd("the server's clock jumps about"))
    }

    async fn manage<'p>(
        self: &Arc<Self>,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        policy.fits_micros()?;
        let (wish, until) = match operation {
            KeyOperation::Peek => ("", 0),
            KeyOperation::Reset => ("reset", 0),
            KeyOperation::Block(until) => ("block", question::micros_up(until.as_nanos())),
            KeyOperation::Unblock => ("unblock", 0),
        };
        let state = state_key(&self.settings.prefix, policy, key);
        if !wish.is_empty() {
            let mut call = script::MANAGE.call(std::iter::once(state.as_slice()));
            call.arg(wish).arg(until).arg(question::letter(policy)).arg(question::length(policy));
            let spot = self.topology.spot(&state);
            let value: Value = self.topology.call(spot, &call, self.deadline()).await?;
            head(&value).ok_or(Failure::Odd("the answer of a script"))?;
        }
        self.denials.forget(&state);
        match operation {
            KeyOperation::Peek => {}
            KeyOperation::Reset => self.drop_lease(&state),
            KeyOperation::Block(_) | KeyOperation::Unblock => self.give_up(&state).await,
        }
        self.decide_exactly(&[Check::new(policy, key).cost(Cost::PEEK)]).await
    }
}

pub(crate) fn passes(question: &Question<'_>, state: &Recalled, now: Timestamp) -> bool {
    state.state(question, now).allows(now, Cost::new(question.cost))
}

/// The decision made then; `at` says when each question was answered.
pub(crate) fn decision<'p>(
    now: Timestamp,
    checks: &[Check<'p, '_>],
    questions: &Questions<'p>,
    states: &[Recalled],
    allowed: bool,
    at: impl Fn(usize) -> Timestamp,
) -> Decision<'p> {
    let status = |(check, &member): (&Check<'p, '_>, &usize)| -> Option<PolicyStatus<'p>> {
        let (question, state) = (questions.all.get(member)?, states.get(member)?);
        Some(state.answer(question, check.policy, at(member), allowed))
    };
    Decision::new(now, checks.iter().zip(&questions.members).filter_map(status))
}

/// Time passes on tokio's runtimes only.
fn on_runtime() -> Result<(), Failure> {
    match Handle::try_current() {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::Down("it was asked outside of a tokio runtime".to_owned())),
    }
}

impl Store for RedisStore {
    async fn decide<'p>(&self, checks: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        if let Some(decided) = self.inner.decide_locally(checks) {
            return Ok(decided);
        }
        on_runtime()?;
        self.inner.decide(checks).await
    }

    #[inline]
    fn decide_at_once<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> Option<Result<Decision<'p>, StoreError>> {
        self.inner.decide_locally(checks).map(Ok)
    }

    async fn settle(&self, reservation: &Reservation, used: Cost) -> Result<Timestamp, StoreError> {
        self.inner.settle(reservation, used).await
    }

    async fn undo(&self, reservation: &Reservation) -> Result<Timestamp, StoreError> {
        self.inner.undo(reservation).await
    }

    async fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        on_runtime()?;
        self.inner.manage(policy, key, operation).await
    }

    fn instances(&self) -> NonZeroU64 {
        self.inner.instances.count()
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("health", &self.health()).finish_non_exhaustive()
    }
}
