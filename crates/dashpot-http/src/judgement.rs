//! What becomes of a request, and of its response.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dashpot::{Pass, Store};
use dashpot_rules::{Adaptive, Entry, Pending, RuleSet, Ruling};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Full};

use crate::headers::{self, HeaderLines};
use crate::layer::Shared;
use crate::line::Turn;
use crate::response_body::{Held, ResponseBody};
use crate::settle::{Charges, GivesBack};
use crate::watch::Watch;
use crate::{AnyBody, Wait, denial};

/// What becomes of a request.
pub(crate) enum Judgement<St: Store + 'static> {
    /// It is served.
    Serve(Sequel<St>),
    /// It is answered here.
    Refuse(Box<Response<Bytes>>),
}

/// What is done before and after a request is served.
pub(crate) struct Sequel<St: Store + 'static> {
    /// Its place in line.
    turn: Option<Turn<St>>,
    /// How long a queue holds it in which nobody stands: that of a store that stood in.
    delay: Duration,
    lines: HeaderLines,
    charges: Vec<Charges<St>>,
    /// What else it takes before it is served, and who wants to know how it fares; mostly nothing and nobody.
    prepared: Option<Box<Prepared>>,
    /// To tell who is turned away, if gates are ahead.
    shared: Option<Arc<Shared<St>>>,
}

/// What it takes to be served here.
pub(crate) struct Prepared {
    pub(crate) rules: Arc<RuleSet>,
    pub(crate) adaptive: Vec<Arc<Adaptive>>,
    pub(crate) entrance: Entrance,
    watch: Option<Watch>,
}

/// The gates of this process.
pub(crate) enum Entrance {
    /// They are entered.
    Entered(Vec<Pass>),
    /// They are to be entered when it is its turn.
    Ahead(Entry),
}

impl Prepared {
    pub(crate) fn new(
        rules: Arc<RuleSet>,
        adaptive: Vec<Arc<Adaptive>>,
        entrance: Entrance,
    ) -> Box<Self> {
        Box::new(Self { rules, adaptive, entrance, watch: None })
    }
}

impl<St: Store + 'static> Judgement<St> {
    pub(crate) fn of(
        ruling: &mut Ruling<'_>,
        rules: &RuleSet,
        request: &HeaderMap,
        shared: &Arc<Shared<St>>,
        turn: Option<Turn<St>>,
    ) -> Self {
        if let Some(refusal) = ruling.refusal() {
            // In a box, so that nobody has to carry it who is served.
            return Self::Refuse(Box::new(denial::refuse(refusal, ruling, rules, request)));
        }
        let mut sequel = Sequel {
            turn,
            delay: Duration::ZERO,
            lines: HeaderLines::default(),
            charges: Vec::from_iter(Charges::of(ruling.take_pending(), shared)),
            prepared: None,
            shared: None,
        };
        if let Some(decision) = ruling.decision() {
            if sequel.turn.is_none() {
                sequel.delay = decision.delay();
            }
            let wait = Wait::of(decision, Duration::ZERO);
            headers::write_state(decision, &wait, rules.headers(), &mut sequel.lines);
            headers::expose_if_asked(rules, request, &mut sequel.lines);
        }
        Self::Serve(sequel)
    }
}

impl<St: Store + 'static> Sequel<St> {
    /// Whether a queue or a gate holds it.
    pub(crate) fn has_to_wait(&self) -> bool {
        self.is_queued() || self.is_ahead_of_gates()
    }

    fn is_ahead_of_gates(&self) -> bool {
        let is_ahead = |prepared: &Prepared| matches!(prepared.entrance, Entrance::Ahead(_));
        self.prepared.as_deref().is_some_and(is_ahead)
    }

    /// Whether a queue holds it.
    pub(crate) fn is_queued(&self) -> bool {
        self.turn.is_some() || !self.delay.is_zero()
    }

    /// Notes what it takes to be served. If gates are ahead, what was taken is given back if it is not.
    pub(crate) fn prepare(
        &mut self,
        prepared: Box<Prepared>,
        taken: Vec<Pending<'_>>,
        shared: &Arc<Shared<St>>,
    ) {
        self.prepared = Some(prepared);
        self.shared = self.is_ahead_of_gates().then(|| shared.clone());
        self.owe(taken, shared);
    }

    /// Waits for its turn, and enters. If it is turned away, the answer to that.
    pub(crate) async fn wait(&mut self, request: &HeaderMap) -> Option<Response<Bytes>> {
        if let Some(turn) = self.turn.take() {
            turn.await;
        } else if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        if self.is_ahead_of_gates() {
            self.if_dropped(GivesBack::All);
        }
        if let Some(prepared) = &mut self.prepared
            && let Entrance::Ahead(entry) = &prepared.entrance
        {
            match entry.enter().await {
                Ok(passes) => prepared.entrance = Entrance::Entered(passes),
                Err(number) => {
                    let rule = prepared.rules.rules().get(number);
                    if let Some((rule, shared)) = rule.zip(self.shared.as_deref()) {
                        shared.report_shed(rule);
                    }
                    return Some(denial::shed(rule, &prepared.rules, request));
                }
            }
        }
        self.if_dropped(GivesBack::Nothing);
        None
    }

    /// It is served from now on.
    pub(crate) fn begin(&mut self) {
        if let Some(prepared) = &mut self.prepared
            && let Entrance::Entered(passes) = &mut prepared.entrance
        {
            let adaptive = std::mem::take(&mut prepared.adaptive);
            prepared.watch = Watch::begin(std::mem::take(passes), adaptive);
        }
    }

    /// It was not answered.
    pub(crate) fn fail(mut self) {
        if let Some(watch) = self.take_watch() {
            watch.failed();
        }
    }

    fn take_watch(&mut self) -> Option<Watch> {
        self.prepared.take()?.watch
    }

    /// Adds what else is to be settled.
    pub(crate) fn owe(&mut self, pending: Vec<Pending<'_>>, shared: &Arc<Shared<St>>) {
        self.charges.extend(Charges::of(pending, shared));
        if self.is_ahead_of_gates() {
            let is_queued = self.is_queued();
            self.if_dropped(if is_queued { GivesBack::AllButQueues } else { GivesBack::All });
        }
    }

    fn if_dropped(&mut self, gives_back: GivesBack) {
        self.charges.iter_mut().for_each(|charges| charges.if_dropped(gives_back));
    }

    /// Settles what the response says, and tells how the caller stands.
    pub(crate) fn finish<B: AnyBody>(mut self, mut response: Response<B>) -> Response<B> {
        let watch = self.take_watch();
        self.lines.write(response.headers_mut());
        let mut held: Vec<Box<dyn Held>> = Vec::new();
        held.extend(watch.and_then(|watch| watch.answered(response.status())));
        for charges in self.charges {
            charges.settle(&response, &mut held);
        }
        if held.is_empty() {
            return response;
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            response.extensions_mut().insert(InFlight(Arc::new(held)));
            return response;
        }
        response.map(|body| B::hold(ResponseBody::new(body, held)))
    }
}

/// What is held while a request is in flight, beyond its response: in the extensions of one that switches protocols (101), if
/// there is something. Given back when the last of its clones is dropped, so whoever carries on the connection keeps it until that ends.
#[derive(Clone)]
pub struct InFlight(#[expect(dead_code, reason = "to be dropped")] Arc<Vec<Box<dyn Held>>>);

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").finish_non_exhaustive()
    }
}

/// A response that was made here.
pub(crate) fn made<B: AnyBody>(response: Response<Bytes>) -> Response<B> {
    response.map(|bytes| B::hold(Full::new(bytes).map_err(|never| match never {})))
}
