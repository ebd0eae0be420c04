//! What becomes of a request, and of its response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dashpot::Store;
use dashpot_rules::{Pending, Refusal, RuleSet, Ruling};
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, Full};

use crate::headers::{self, Lines, Sink};
use crate::layer::Shared;
use crate::response_body::ResponseBody;
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
    /// How long a queue holds it.
    pub(crate) delay: Duration,
    lines: Lines,
    charges: Vec<Charges<St>>,
}

impl<St: Store + 'static> Judgement<St> {
    pub(crate) fn of(
        ruling: &mut Ruling<'_>,
        rules: &RuleSet,
        request: &HeaderMap,
        shared: &Arc<Shared<St>>,
    ) -> Self {
        if let Some(refusal) = ruling.refusal() {
            // In a box, so that nobody has to carry it who is served.
            return Self::Refuse(Box::new(refuse(refusal, ruling, rules, request)));
        }
        let mut sequel = Sequel {
            delay: Duration::ZERO,
            lines: Lines::default(),
            charges: Vec::from_iter(Charges::of(ruling.take_pending(), shared)),
        };
        if let Some(decision) = ruling.decision() {
            sequel.delay = decision.delay();
            let wait = Wait::of(decision, Duration::ZERO);
            headers::write_state(decision, &wait, rules.headers(), &mut sequel.lines);
            expose(rules, request, &mut sequel.lines);
        }
        Self::Serve(sequel)
    }
}

impl<St: Store + 'static> Sequel<St> {
    /// Adds what else is to be settled.
    pub(crate) fn charge(&mut self, pending: Vec<Pending<'_>>, shared: &Arc<Shared<St>>) {
        self.charges.extend(Charges::of(pending, shared));
    }

    /// Settles what the response says, and tells how the caller stands.
    pub(crate) fn finish<B: AnyBody>(self, mut response: Response<B>) -> Response<B> {
        self.lines.write(response.headers_mut());
        for charges in self.charges {
            if let Some(permits) = charges.settle(&response) {
                response = response.map(|body| B::hold(ResponseBody::new(body, permits)));
            }
        }
        response
    }
}

/// A response that was made here.
pub(crate) fn made<B: AnyBody>(response: Response<Bytes>) -> Response<B> {
    response.map(|bytes| B::hold(Full::new(bytes).map_err(|never| match never {})))
}

/// Whether who asks speaks gRPC.
fn is_grpc(request: &HeaderMap) -> bool {
    let kind = request.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Lets a script of another origin read what is told.
fn expose(rules: &RuleSet, request: &HeaderMap, out: &mut impl Sink) {
    if rules.headers().expose && request.contains_key(ORIGIN) {
        headers::write_exposed(rules.headers(), out);
    }
}

/// The answer to a request that is not served.
fn refuse(
    refusal: Refusal<'_>,
    ruling: &Ruling<'_>,
    rules: &RuleSet,
    request: &HeaderMap,
) -> Response<Bytes> {
    let is_grpc = is_grpc(request);
    let mut response = match (refusal, ruling.decision()) {
        (Refusal::Limited(rule), Some(decision)) => {
            let wait = Wait::of(decision, rules.headers().jitter);
            denial::denied(decision, &wait, rules.headers(), rule.on_deny(), is_grpc)
        }
        (Refusal::Blocked(_), _) => denial::blocked(is_grpc),
        (Refusal::Absent(rule), _) => denial::absent(rule.on_deny(), is_grpc),
        // Nothing is limited without a decision.
        (Refusal::Unavailable(_) | Refusal::Limited(_), _) => denial::unavailable(is_grpc),
    };
    expose(rules, request, response.headers_mut());
    response
}
