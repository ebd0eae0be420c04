//! The service: a request runs downhill, once.

use std::future::{Future, poll_fn};
use std::mem;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dashpot::{Key, MemoryStore, Store};
use dashpot_rules::{Gates, Plan, Rule, RuleSet, Ruling};
use http::{HeaderMap, Request, Response};
use tower_service::Service;

use crate::judgement::{Entrance, Judgement, Prepared, Sequel, made};
use crate::layer::Shared;
use crate::line::{Lines, Turn};
use crate::request_body::RequestBody;
use crate::settle::undo;
use crate::{AnyBody, HttpDescriptor, ResponseFuture, denial};

/// How long to wait for a body in which a field is wanted. After that, the field is absent.
const PATIENCE: Duration = Duration::from_secs(10);

/// A service that is limited by rules. Made by a [`RateLimitLayer`](crate::RateLimitLayer).
///
/// A denied request never reaches the service. An allowed one does, after a queue's delay if there
/// is one; its response tells how the caller stands.
#[derive(Debug)]
pub struct RateLimit<S, St = MemoryStore> {
    inner: S,
    shared: Arc<Shared<St>>,
    peer: Option<IpAddr>,
}

impl<S, St> RateLimit<S, St> {
    pub(crate) const fn new(inner: S, shared: Arc<Shared<St>>) -> Self {
        Self { inner, shared, peer: None }
    }

    /// The same for requests of one connection, of which it is known who made it: no request has to say so.
    #[must_use]
    pub const fn connected_by(mut self, peer: IpAddr) -> Self {
        self.peer = Some(peer);
        self
    }
}

impl<S: Clone, St> Clone for RateLimit<S, St> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: self.shared.clone(), peer: self.peer }
    }
}

impl<S, St, ReqBody, ResBody> Service<Request<ReqBody>> for RateLimit<S, St>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    St: Store + 'static,
    ReqBody: AnyBody,
    ResBody: AnyBody,
{
    type Response = Response<ResBody>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ResBody, S::Error, St>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let peer = self.peer;
        match self.shared.judge_at_once(peer, &request) {
            Some(Judgement::Refuse(response)) => ResponseFuture::refused(response),
            Some(Judgement::Serve(mut sequel)) if !sequel.has_to_wait() => {
                sequel.begin();
                ResponseFuture::serving(self.inner.call(request), sequel)
            }
            Some(Judgement::Serve(sequel)) => {
                ResponseFuture::waiting(serve(self.take_ready(), request, sequel))
            }
            None => {
                let (shared, inner) = (self.shared.clone(), self.take_ready());
                ResponseFuture::waiting(async move {
                    let (judgement, request) = shared.judge(peer, request).await;
                    match judgement {
                        Judgement::Refuse(response) => Ok(made(*response)),
                        Judgement::Serve(sequel) => serve(inner, request, sequel).await,
                    }
                })
            }
        }
    }
}

impl<S: Clone, St> RateLimit<S, St> {
    /// The service that is ready, to go with a request; its clone is made ready for the next.
    fn take_ready(&mut self) -> S {
        let next = self.inner.clone();
        mem::replace(&mut self.inner, next)
    }
}

impl<St: Store + 'static> Shared<St> {
    /// [`judge`](Self::judge), if that takes no waiting: for the body, or for the store.
    fn judge_at_once<B>(
        self: &Arc<Self>,
        peer: Option<IpAddr>,
        request: &Request<B>,
    ) -> Option<Judgement<St>> {
        let rules = self.rules.borrow();
        let descriptor = HttpDescriptor::new(&rules, request, None).connected_by(peer);
        let selection = rules.select(&descriptor);
        if selection.needs_body() {
            return None;
        }
        let mut plan = selection.plan(&descriptor);
        let gates = plan.take_gates();
        let mut ruling = Ruling::default();
        if let Some(judgement) = self.shed(&gates, &rules, request.headers()) {
            return Some(judgement);
        }
        // Held until who has to wait stands in line: nobody comes in between.
        let mut lines = plan.has_queue().then(|| self.lines.lock());
        if !plan.decide_at_once(&self.store, &self.local, &mut ruling) {
            return None;
        }
        let turn = lines.as_deref_mut().and_then(|lines| self.stand(lines, &plan, &ruling));
        drop(lines);
        self.report_denied(&plan, &ruling);
        let mut judgement = Judgement::of(&mut ruling, &rules, request.headers(), self, turn);
        self.prepare(&mut judgement, &plan, &ruling, &gates, &rules);
        Some(judgement)
    }

    /// Turns it away, if there is neither room for it nor a place to wait in: before anything is asked.
    fn shed(
        &self,
        gates: &Gates<'_>,
        rules: &RuleSet,
        request: &HeaderMap,
    ) -> Option<Judgement<St>> {
        let rule = gates.closed()?;
        gates.shed(rule);
        self.report_shed(rule);
        Some(Judgement::Refuse(Box::new(denial::shed(Some(rule), rules, request))))
    }

    /// Enters the gates, or notes that they are ahead; and who is to be told how it fares.
    fn prepare<'r>(
        self: &Arc<Self>,
        judgement: &mut Judgement<St>,
        plan: &Plan<'r>,
        ruling: &Ruling<'r>,
        gates: &Gates<'r>,
        rules: &Arc<RuleSet>,
    ) {
        let Judgement::Serve(sequel) = judgement else {
            gates.count(false);
            return;
        };
        // Who stands in a queue first takes no room meanwhile.
        let entrance = match gates.is_empty() {
            true => {
                gates.count(true);
                Entrance::Entered(Vec::new())
            }
            false if sequel.is_queued() => Entrance::Ahead(gates.entry()),
            false => gates.try_enter().map_or_else(Entrance::Ahead, Entrance::Entered),
        };
        let adaptive: Vec<_> = plan.adaptive().cloned().collect();
        if adaptive.is_empty() && gates.is_empty() {
            return;
        }
        let taken = match entrance {
            Entrance::Ahead(_) => plan.taken(ruling, self.store.instances()),
            Entrance::Entered(_) => Vec::new(),
        };
        let prepared = Prepared::new(rules.clone(), adaptive, entrance);
        sequel.prepare(prepared, taken, self);
    }

    /// Stands in line, if there is something to wait for.
    fn stand<'r>(
        self: &Arc<Self>,
        lines: &mut Lines,
        plan: &Plan<'r>,
        ruling: &Ruling<'r>,
    ) -> Option<Turn<St>> {
        let decision = ruling.decision()?;
        let queued = plan.queued(ruling);
        let queued = queued.filter_map(|(check, status)| {
            check.reservation(decision).map(|taken| (check, status, taken))
        });
        let number = lines.join(decision.at(), queued)?;
        Some(Turn::new(number, self.clone()))
    }

    /// Tells who wants to know whom a limit was reached by.
    fn report_denied(&self, plan: &Plan<'_>, ruling: &Ruling<'_>) {
        if let Some(hear) = &self.on_denied
            && ruling.refusal().is_some()
        {
            plan.denied(ruling).for_each(|(rule, key)| hear(rule, key));
        }
    }

    /// The same of a gate, which everybody shares.
    pub(crate) fn report_shed(&self, rule: &Rule) {
        if let Some(hear) = &self.on_denied {
            hear(rule, Key::new(b""));
        }
    }

    /// Identify, plan, decide, describe. Gives the request back, whole.
    async fn judge<B: AnyBody>(
        self: &Arc<Self>,
        peer: Option<IpAddr>,
        mut request: Request<B>,
    ) -> (Judgement<St>, Request<B>) {
        let rules = self.rules.current();
        let selection =
            rules.select(&HttpDescriptor::new(&rules, &request, None).connected_by(peer));
        let mut peeked = None;
        if selection.needs_body() {
            // Who is over another limit is not waited for.
            let mut early = selection
                .without_body()
                .plan(&HttpDescriptor::new(&rules, &request, None).connected_by(peer));
            let gates = early.take_gates();
            if let Some(judgement) = self.shed(&gates, &rules, request.headers()) {
                return (judgement, request);
            }
            let given_back = |taken| undo(self, taken, false);
            if let Some(mut ruling) = early.refuse_early(&self.store, given_back).await {
                self.report_denied(&early, &ruling);
                gates.count(false);
                let judgement = Judgement::of(&mut ruling, &rules, request.headers(), self, None);
                return (judgement, request);
            }
            let (parts, body) = request.into_parts();
            let mut body = RequestBody::new(body);
            peeked = body.peek(rules.identity().body_max, PATIENCE).await;
            request = Request::from_parts(parts, B::hold(body));
        }
        let mut plan = selection
            .plan(&HttpDescriptor::new(&rules, &request, peeked.as_ref()).connected_by(peer));
        let gates = plan.take_gates();
        if let Some(judgement) = self.shed(&gates, &rules, request.headers()) {
            return (judgement, request);
        }
        let mut enforcing = pin!(plan.enforce(&self.store, &self.local));
        let (mut ruling, turn) = poll_fn(|context| {
            let mut lines = plan.has_queue().then(|| self.lines.lock());
            let ruling = ready!(enforcing.as_mut().poll(context));
            let turn = lines.as_deref_mut().and_then(|lines| self.stand(lines, &plan, &ruling));
            Poll::Ready((ruling, turn))
        })
        .await;
        self.report_denied(&plan, &ruling);
        // First, so that permits are given back if nobody waits for the rest.
        let mut judgement = Judgement::of(&mut ruling, &rules, request.headers(), self, turn);
        let charge = |pending| {
            if let Judgement::Serve(sequel) = &mut judgement {
                sequel.owe(vec![pending], self);
            }
        };
        plan.rehearse(&self.store, &mut ruling, charge).await;
        self.prepare(&mut judgement, &plan, &ruling, &gates, &rules);
        (judgement, request)
    }
}

/// Serves a request that passed, after a queue's delay.
async fn serve<S, St, ReqBody, ResBody>(
    mut inner: S,
    request: Request<ReqBody>,
    mut sequel: Sequel<St>,
) -> Result<Response<ResBody>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    St: Store + 'static,
    ResBody: AnyBody,
{
    if let Some(refused) = sequel.wait(request.headers()).await {
        return Ok(made(refused));
    }
    sequel.begin();
    match inner.call(request).await {
        Ok(response) => Ok(sequel.finish(response)),
        Err(error) => {
            sequel.fail();
            Err(error)
        }
    }
}
