//! In front of reqwest.

use async_trait::async_trait;
use http::{Extensions, HeaderMap, Response as HttpResponse, StatusCode};
use reqwest::{Body, Request, Response, ResponseBuilderExt};
use reqwest_middleware::{Error, Middleware, Next, Result};

use crate::flight::Flight;
use crate::run::{Exchange, Failure, Heard};
use crate::safety::Mishap;
use crate::{Answer, Call, CallError, Manners, ReplayError, Report};

/// What is said about a call goes into its extensions ([`with_extension`](reqwest_middleware::RequestBuilder::with_extension)),
/// and so does its [`Report`] when it failed. An error of reqwest is given back as it is; who was [not sent](crate::NotSent)
/// gets a [`CallError`] as the error of a middleware.
///
/// Bodies that are streamed are sent once: only reqwest knows what is in them.
#[async_trait]
impl Middleware for Manners {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let method = request.method().clone();
        self.mark(&method, request.headers_mut());
        // What reqwest takes for a URL and http does not is in a lane of its own, and reqwest will say so.
        let uri = request.url().as_str().parse().unwrap_or_default();
        let errand = self.errand(&Call::new(&method, &uri, request.headers(), extensions));
        let mut attempts = Attempts { request: Some(request), next, extensions };
        match self.run(errand, &mut attempts).await {
            Ok((answer, flight, report)) => Ok(wrapped(answer, flight, report)),
            Err(Failure::NotSent(reason, report)) => {
                attempts.extensions.insert(report.clone());
                Err(Error::middleware(CallError::NotSent { reason, report }))
            }
            Err(Failure::Failed(source, report)) => {
                attempts.extensions.insert(report);
                Err(source)
            }
        }
    }
}

/// An answer that is on its way until it has been read.
fn wrapped(answer: Response, flight: Flight, report: Report) -> Response {
    let url = answer.url().clone();
    let (mut head, body) = HttpResponse::<Body>::from(answer).into_parts();
    // Where it came from is not for others to set but like this.
    if let Some(known) = HttpResponse::builder().url(url).extensions_mut() {
        head.extensions.extend(std::mem::take(known));
    }
    head.extensions.insert(report);
    HttpResponse::from_parts(head, Body::wrap(Answer::new(body, flight))).into()
}

/// One call, as often as it is made.
struct Attempts<'a> {
    /// Gone once it was sent and could not be kept.
    request: Option<Request>,
    next: Next<'a>,
    extensions: &'a mut Extensions,
}

impl Exchange for Attempts<'_> {
    type Answer = Response;
    type Error = Error;

    async fn send(&mut self) -> Result<Response> {
        let kept = self.request.as_ref().and_then(Request::try_clone);
        let request = std::mem::replace(&mut self.request, kept);
        let Some(request) = request else {
            return Err(Error::middleware(ReplayError::Gone));
        };
        self.next.clone().run(request, self.extensions).await
    }

    fn can_repeat(&self) -> bool {
        self.request.is_some()
    }

    /// A body of bytes is sent by a copy, which nobody else reads.
    fn rewind(&mut self) -> bool {
        self.can_repeat()
    }

    fn cause(error: &Error) -> &(dyn std::error::Error + 'static) {
        error
    }

    fn judge(error: &Error) -> Mishap {
        match error {
            Error::Reqwest(error) if error.is_builder() || error.is_redirect() => Mishap::Lasting,
            // Also if it could not connect: that may have been where it was redirected to after it was carried out.
            Error::Reqwest(_) => Mishap::Unknown,
            // Somebody further in had its reasons.
            Error::Middleware(_) => Mishap::Lasting,
        }
    }
}

impl Heard for Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}
