//! What becomes of a request, and of its response.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dashpot::Store;
use dashpot_rules::{Pending, RuleSet, Ruling};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Full};

use crate::headers::{self, Lines};
use crate::layer::Shared;
use crate::line::Turn;
use crate::response_body::{Held, ResponseBody};
use crate::settle::Charges;
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
    lines: Lines,
    charges: Vec<Charges<St>>,
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
            lines: Lines::default(),
            charges: Vec::from_iter(Charges::of(ruling.take_pending(), shared)),
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
    /// Whether a queue holds it.
    pub(crate) fn has_to_wait(&self) -> bool {
        self.turn.is_some() || !self.delay.is_zero()
    }

    /// Waits for its turn.
    pub(crate) async fn wait(&mut self) {
        if let Some(turn) = self.turn.take() {
            turn.await;
        } else if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
    }

    /// Adds what else is to be settled.
    pub(crate) fn charge(&mut self, pending: Vec<Pending<'_>>, shared: &Arc<Shared<St>>) {
        self.charges.extend(Charges::of(pending, shared));
    }

    /// Settles what the response says, and tells how the caller stands.
    pub(crate) fn finish<B: AnyBody>(self, mut response: Response<B>) -> Response<B> {
        self.lines.write(response.headers_mut());
        let mut held: Vec<Box<dyn Held>> = Vec::new();
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
