//! limitador behind tonic. Its own server is not published as a crate; this does with a call what that one does
//! when it is told nothing else, less metrics and traces: limits in memory, no headers.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use ::limitador::RateLimiter;
use ::limitador::limit::{Context, Expression, Limit};
use tokio::runtime::Builder;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service as TowerService};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::message::{OK, OVER_LIMIT, RateLimitRequest, RateLimitResponse};
use super::{DOMAIN, KEY, SHOULD_RATE_LIMIT};
use crate::servers::at;

/// How many counters it may keep. Its own server makes that of the memory there is, and it is more.
const COUNTERS: u64 = 1_000_000;

/// In the child: serves until it is killed. Told a port, a limit, its seconds, and how many threads: `one` or `many`.
pub(crate) fn serve(args: &[String]) {
    let [port, requests, seconds, threads] = args else { panic!("not a limit: {args:?}") };
    let number = |text: &String| text.parse::<u64>().expect("a number");
    let port: u16 = port.parse().expect("a port");

    let limiter = RateLimiter::new(COUNTERS);
    let variable = Expression::parse(format!("descriptors[0].{KEY}")).expect("a right expression");
    limiter.add_limit(Limit::new(DOMAIN, number(requests), number(seconds), [], [variable]));

    let mut runtime = match threads.as_str() {
        "one" => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build().expect("a runtime");
    let server = Server::builder().add_service(Service(Arc::new(limiter)));
    let address = at(port).parse().expect("an address");
    runtime.block_on(server.serve(address)).expect("it serves");
}

/// What tonic would have made of the proto.
#[derive(Clone)]
struct Service(Arc<RateLimiter>);

impl NamedService for Service {
    const NAME: &'static str = "envoy.service.ratelimit.v3.RateLimitService";
}

impl TowerService<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != SHOULD_RATE_LIMIT {
            return Box::pin(async { Ok(Status::unimplemented("").into_http()) });
        }
        let service = self.clone();
        Box::pin(async move { Ok(Grpc::new(ProstCodec::default()).unary(service, request).await) })
    }
}

impl UnaryService<RateLimitRequest> for Service {
    type Response = RateLimitResponse;
    type Future = BoxFuture<Response<RateLimitResponse>, Status>;

    fn call(&mut self, request: Request<RateLimitRequest>) -> Self::Future {
        let limiter = Arc::clone(&self.0);
        Box::pin(async move { decide(&limiter, request.into_inner()) })
    }
}

/// As `limitador-server/src/envoy_rls/server.rs` does.
fn decide(
    limiter: &RateLimiter,
    request: RateLimitRequest,
) -> Result<Response<RateLimitResponse>, Status> {
    let mut values = Vec::new();
    for descriptor in &request.descriptors {
        let entries = descriptor.entries.iter();
        let entries = entries.map(|entry| (entry.key.clone(), entry.value.clone()));
        values.push(entries.collect::<HashMap<_, _>>());
    }
    let hits = u64::from(request.hits_addend.max(1));
    let mut context = Context::default();
    context.list_binding("descriptors".to_owned(), values);
    let result = limiter
        .check_rate_limited_and_update(&request.domain.into(), &context, hits)
        .map_err(|_| Status::unavailable("Service unavailable"))?;
    let overall_code = if result.limited { OVER_LIMIT } else { OK };
    Ok(Response::new(RateLimitResponse { overall_code }))
}
