//! What becomes of a request, and of its response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dashpot::Store;
use dashpot_rules::{Refusal, RuleSet, Ruling};
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{Request, Response};

use crate::headers::{self, Lines, Sink};
use crate::layer::Shared;
use crate::settle::Charges;
use crate::{ResponseBody, Wait, denial};

/// What becomes of a request.
pub(crate) enum Judgement<St: Store + 'static> {
    /// It is served.
    Serve(Sequel<St>),
    /// It is answered here.
    Refuse(Response<Bytes>),
}

/// What is done before and after a request is served.
pub(crate) struct Sequel<St: Store + 'static> {
    /// How long a queue holds it.
    pub(crate) delay: Duration,
    lines: Lines,
    charges: Option<Box<Charges<St>>>,
}

impl<St: Store + 'static> Judgement<St> {
    pub(crate) fn of(
        mut ruling: Ruling<'_>,
        rules: &RuleSet,
        manner: Manner,
        shared: &Arc<Shared<St>>,
    ) -> Self {
        if let Some(refusal) = ruling.refusal() {
            return Self::Refuse(refuse(refusal, &ruling, rules, manner));
        }
        let mut sequel = Sequel {
            delay: Duration::ZERO,
            lines: Lines::default(),
            charges: Charges::of(&mut ruling, shared),
        };
        if let Some(decision) = ruling.decision() {
            sequel.delay = decision.delay();
            let wait = Wait::of(decision, Duration::ZERO);
            headers::write_state(decision, &wait, rules.headers(), &mut sequel.lines);
            manner.expose(rules, &mut sequel.lines);
        }
        Self::Serve(sequel)
    }
}

impl<St: Store + 'static> Sequel<St> {
    /// Settles what the response says, and tells how the caller stands.
    pub(crate) fn finish<B>(self, mut response: Response<B>) -> Response<ResponseBody<B>> {
        let permits = self.charges.and_then(|charges| charges.settle(&response));
        self.lines.write(response.headers_mut());
        response.map(|body| ResponseBody::own(body, permits))
    }
}

/// What of a request matters to how it is answered.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    is_grpc: bool,
    /// A script of some origin asks.
    has_origin: bool,
}

impl Manner {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let headers = request.headers();
        let kind = headers.get(CONTENT_TYPE);
        Self {
            is_grpc: kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc")),
            has_origin: headers.contains_key(ORIGIN),
        }
    }

    fn expose(self, rules: &RuleSet, out: &mut impl Sink) {
        if self.has_origin {
            headers::write_exposed(rules.headers(), out);
        }
    }
}

/// The answer to a request that is not served.
fn refuse(
    refusal: Refusal<'_>,
    ruling: &Ruling<'_>,
    rules: &RuleSet,
    manner: Manner,
) -> Response<Bytes> {
    let mut response = match (refusal, ruling.decision()) {
        (Refusal::Limited(rule), Some(decision)) => {
            let wait = Wait::of(decision, rules.headers().jitter);
            denial::denied(decision, &wait, rules.headers(), rule.on_deny(), manner.is_grpc)
        }
        (Refusal::Blocked(_), _) => denial::blocked(manner.is_grpc),
        (Refusal::Absent(rule), _) => denial::absent(rule.on_deny(), manner.is_grpc),
        // Nothing is limited without a decision.
        (Refusal::Unavailable(_) | Refusal::Limited(_), _) => denial::unavailable(manner.is_grpc),
    };
    manner.expose(rules, response.headers_mut());
    response
}
