//! What becomes of a request, and of its response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dashpot::Store;
use dashpot_rules::{Pending, RuleSet, Ruling};
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, Full};

use crate::headers::{self, Lines};
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
            return Self::Refuse(Box::new(denial::refuse(refusal, ruling, rules, request)));
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
            headers::expose_if_asked(rules, request, &mut sequel.lines);
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
