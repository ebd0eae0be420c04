//! The layer in other shapes than axum's: plain tower, hyper, gRPC, and servers that do not know who
//! connected.

use std::convert::Infallible;
use std::future::Ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use dashpot::MemoryStore;
use dashpot_http::{AnyBody, Peer, RateLimit, RateLimitLayer, ResponseFuture};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use crate::common::{limit, rules, store};

const BY_IP: &str = "[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['2/min']";

type Body = UnsyncBoxBody<Bytes, Infallible>;

fn body(text: &'static str) -> Body {
    Full::from(text).boxed_unsync()
}

async fn hello<B>(_: Request<B>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(body("hello")))
}

fn request(peer: Option<&str>) -> Request<Body> {
    let mut request = Request::get("/").body(Body::default()).unwrap();
    if let Some(peer) = peer {
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
    }
    request
}

/// The statuses of so many requests of this peer.
async fn statuses<S, B>(service: &mut S, peer: Option<&str>, count: usize) -> Vec<u16>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: std::fmt::Debug,
{
    let mut statuses = Vec::new();
    for _ in 0..count {
        let response = service.ready().await.unwrap().call(request(peer)).await.unwrap();
        statuses.push(response.status().as_u16());
    }
    statuses
}

#[test]
fn it_is_what_servers_ask_of_a_service() {
    fn is_shared<T: Clone + Send + Sync + 'static>() {}
    fn is_sent<T: Send + 'static>() {}
    is_shared::<RateLimitLayer>();
    is_shared::<RateLimit<tower::util::BoxCloneSyncService<(), (), ()>>>();
    is_sent::<RateLimit<tower::util::BoxCloneService<(), (), ()>>>();
    is_sent::<ResponseFuture<Ready<Infallible>, Body, Infallible, MemoryStore>>();
    // The store is the one in memory, unless it is another.
    let _: RateLimitLayer = RateLimitLayer::from_rules(rules(BY_IP), MemoryStore::new());
}

#[tokio::test]
async fn plain_tower() {
    let mut service =
        ServiceBuilder::new().layer(limit(rules(BY_IP), store().0)).service(service_fn(hello));
    assert_eq!(statuses(&mut service, Some("192.0.2.1:1"), 3).await, [200, 200, 429]);
    // Another port is not another caller; another address is.
    assert_eq!(statuses(&mut service, Some("192.0.2.1:2"), 1).await, [429]);
    assert_eq!(statuses(&mut service, Some("192.0.2.2:1"), 1).await, [200]);
    let answer = service.oneshot(request(Some("192.0.2.2:1"))).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello");
}

/// CVE-2026-30827, for servers that say the peer themselves.
#[tokio::test]
async fn mapped_peers_are_ipv4_and_networks_of_ipv6_are_one() {
    let mut service = limit(rules(BY_IP), store().0).layer(service_fn(hello));
    assert_eq!(statuses(&mut service, Some("[::ffff:192.0.2.1]:1"), 3).await, [200, 200, 429]);
    assert_eq!(statuses(&mut service, Some("192.0.2.1:1"), 1).await, [429]);
    assert_eq!(statuses(&mut service, Some("[::ffff:192.0.2.2]:1"), 1).await, [200]);
    assert_eq!(statuses(&mut service, Some("[2001:db8::1]:1"), 2).await, [200, 200]);
    assert_eq!(statuses(&mut service, Some("[2001:db8::2]:1"), 1).await, [429]);
    assert_eq!(statuses(&mut service, Some("[2001:db8:0:1::1]:1"), 1).await, [200]);
}

/// A server that does not know who connected: all are one, and nothing breaks.
#[tokio::test]
async fn without_a_peer_all_are_one() {
    let mut service = limit(rules(BY_IP), store().0).layer(service_fn(hello));
    assert_eq!(statuses(&mut service, None, 3).await, [200, 200, 429]);
    assert_eq!(statuses(&mut service, Some("192.0.2.1:1"), 1).await, [200]);
}

/// Who is not known is not trusted, either.
#[tokio::test]
async fn without_a_peer_nobody_is_believed() {
    for trust in ["trusted_proxies = ['0.0.0.0/0', '::/0']", "hops = 1"] {
        let text = format!("[identity]\n{trust}\nuser = 'header:x-user-id'\n{}", BY_IP)
            .replace("'ip'", "'user | ip'");
        let service = limit(rules(&text), store().0).layer(service_fn(hello));
        for n in 0..4 {
            let mut request = request(None);
            let said = |n: i32| http::HeaderValue::from_str(&format!("203.0.113.{n}")).unwrap();
            request.headers_mut().insert("x-forwarded-for", said(n));
            request.headers_mut().insert("x-user-id", said(n));
            let status = service.clone().oneshot(request).await.unwrap().status();
            assert_eq!(status, if n < 2 { 200 } else { 429 }, "{trust}: {n}");
        }
    }
}

/// axum without `into_make_service_with_connect_info`: worse limits, but no errors.
#[tokio::test]
async fn a_router_that_forgot_to_say_who_connects() {
    let app = axum::Router::new().fallback(async || "hello");
    let app = app.layer(limit(rules(BY_IP), store().0));
    let mut got = Vec::new();
    for _ in 0..3 {
        let request = Request::get("/").body(axum::body::Body::empty()).unwrap();
        got.push(app.clone().oneshot(request).await.unwrap().status().as_u16());
    }
    assert_eq!(got, [200, 200, 429]);
}

/// On a Unix socket nobody has an address.
#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let path = std::env::temp_dir().join(format!("dashpot-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let app = axum::Router::new().fallback(async || "hello").layer(limit(rules(BY_IP), store().0));
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    for expected in ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429"] {
        let asking = async {
            let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
            let head = b"GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.7\r\nconnection: close\r\n\r\n";
            stream.write_all(head).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer =
            tokio::time::timeout(crate::common::PATIENCE, asking).await.expect("no answer");
        assert!(answer.starts_with(expected), "{answer}");
    }
    server.abort();
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn hyper() {
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;

    let limited = limit(rules(BY_IP), store().0).layer(service_fn(hello));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await.unwrap();
            // hyper leaves it to its user to say who connected.
            let known = limited.clone().map_request(move |request: Request<Incoming>| {
                let mut request = request.map(BodyExt::boxed_unsync);
                request.extensions_mut().insert(Peer(peer));
                request
            });
            let service = TowerToHyperService::new(known);
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    let server = crate::common::Server::at(address, server);
    assert_eq!(crate::common::get("/").statuses(&server, 3).await, [200, 200, 429]);
    assert_eq!(crate::common::get("/").from("127.0.0.2").status(&server).await, 200);
}

async fn grpc(text: &str, content_type: &str) -> Response<Body> {
    let service = limit(rules(text), store().0).layer(service_fn(hello));
    let request = Request::post("/pkg.Service/Method").header("content-type", content_type);
    let request = request.version(http::Version::HTTP_2).body(Body::default()).unwrap();
    service.oneshot(request).await.unwrap()
}

/// gRPC clients read a status of their own; to HTTP all is well.
#[tokio::test]
async fn grpc_is_answered_in_its_own_way() {
    let denied = "[[rule]]\nname = 'r'\nlimits = ['0/min']\non_deny = { status = 418, body = 'x' }";
    for kind in ["application/grpc", "application/grpc+proto", "application/grpc; x=1"] {
        let answer = grpc(denied, kind).await;
        assert_eq!(answer.status(), 200, "{kind}");
        assert_eq!(answer.headers()["grpc-status"], "8", "{kind}");
        assert_eq!(answer.headers()["content-type"], "application/grpc");
        // What is never granted is not to be tried again.
        assert_eq!(answer.headers()["grpc-retry-pushback-ms"], "-1");
        assert!(answer.headers().contains_key("grpc-message"));
        assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    }
    assert_eq!(grpc(denied, "application/json").await.status(), 418);
    let allowed = grpc(BY_IP, "application/grpc").await;
    assert!(!allowed.headers().contains_key("grpc-status"));
}

#[tokio::test]
async fn grpc_is_told_when_to_come_back() {
    let service = limit(rules("[[rule]]\nname = 'r'\nlimits = ['1/15s']"), store().0);
    let service = service.layer(service_fn(hello));
    let ask = || {
        let request = Request::post("/").header("content-type", "application/grpc");
        service.clone().oneshot(request.body(Body::default()).unwrap())
    };
    assert!(!ask().await.unwrap().headers().contains_key("grpc-status"));
    let denied = ask().await.unwrap();
    assert_eq!(denied.headers()["grpc-status"], "8");
    assert_eq!(denied.headers()["grpc-retry-pushback-ms"], "15000");
    assert_eq!(denied.headers()["retry-after"], "15");
}

#[tokio::test]
async fn grpc_is_told_of_other_refusals() {
    let missing = "[[rule]]\nname = 'r'\nby = ['header:x-team']\nlimits = ['1/s']\nabsent = 'deny'";
    assert_eq!(grpc(missing, "application/grpc").await.headers()["grpc-status"], "7");
    let blocked = "[block]\nmethod = ['POST']\n[[rule]]\nname = 'r'\nlimits = ['1/s']";
    assert_eq!(grpc(blocked, "application/grpc").await.headers()["grpc-status"], "7");
}

/// The peer as tonic knows it.
#[cfg(feature = "tonic")]
#[tokio::test]
async fn tonic_says_who_connects() {
    use tonic::transport::server::TcpConnectInfo;
    let service = limit(rules(BY_IP), store().0).layer(service_fn(hello));
    for (n, peer) in ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3", "192.0.2.2:1"].iter().enumerate()
    {
        let mut request = request(None);
        let remote_addr = Some(peer.parse::<std::net::SocketAddr>().unwrap());
        request.extensions_mut().insert(TcpConnectInfo { local_addr: None, remote_addr });
        let status = service.clone().oneshot(request).await.unwrap().status();
        assert_eq!(status, if n == 2 { 429 } else { 200 }, "{peer}");
    }
}

/// A service that takes one call for each time it says that it is ready, as the contract has it.
/// A clone has said nothing yet.
struct Strict {
    is_ready: bool,
    can_be_ready: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        let (can_be_ready, calls) = (self.can_be_ready.clone(), self.calls.clone());
        Self { is_ready: false, can_be_ready, calls }
    }
}

impl Service<Request<Body>> for Strict {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if !self.can_be_ready.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called without being ready");
        self.calls.fetch_add(1, Ordering::Relaxed);
        std::future::ready(match request.uri().path() {
            "/fail" => Err("failed".into()),
            _ => Ok(Response::new(body("hello"))),
        })
    }
}

fn strict() -> Strict {
    let can_be_ready = Arc::new(AtomicBool::new(true));
    Strict { is_ready: false, can_be_ready, calls: Arc::default() }
}

#[tokio::test]
async fn only_who_is_ready_is_called() {
    let inner = strict();
    let calls = inner.calls.clone();
    let mut service = limit(rules(BY_IP), store().0).layer(inner);
    assert_eq!(statuses(&mut service, Some("192.0.2.1:1"), 4).await, [200, 200, 429, 429]);
    assert_eq!(statuses(&mut service, Some("192.0.2.2:1"), 2).await, [200, 200]);
    // The denied have not reached it.
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    // Several calls in flight, each of which was ready when it began.
    let mut in_flight = Vec::new();
    for n in 3..6 {
        let peer = format!("192.0.2.{n}:1");
        in_flight.push(service.ready().await.unwrap().call(request(Some(&peer))));
    }
    for call in in_flight.into_iter().rev() {
        assert_eq!(call.await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn who_is_not_ready_is_waited_for() {
    let inner = strict();
    let can_be_ready = inner.can_be_ready.clone();
    let mut service = limit(rules(BY_IP), store().0).layer(inner);
    let mut poll = || {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        Service::<Request<Body>>::poll_ready(&mut service, &mut cx).is_ready()
    };
    can_be_ready.store(false, Ordering::Relaxed);
    assert!(!poll());
    can_be_ready.store(true, Ordering::Relaxed);
    assert!(poll());
}

/// An error of the service is its own, and stays charged.
#[tokio::test]
async fn errors_pass_through() {
    let service = limit(rules(BY_IP), store().0).layer(strict());
    for expected in ["failed", "failed"] {
        let request = Request::get("/fail").body(Body::default()).unwrap();
        let error = service.clone().oneshot(request).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(service.oneshot(request(None)).await.unwrap().status(), 429);
}

/// A permit does not outlive a service that failed.
#[tokio::test]
async fn an_error_gives_the_permit_back() {
    let text = "[[rule]]\nname = 's'\nlimits = ['1 concurrent']\nalgorithm = 'concurrency'";
    let service = limit(rules(text), store().0).layer(strict());
    for _ in 0..3 {
        let request = Request::get("/fail").body(Body::default()).unwrap();
        assert!(service.clone().oneshot(request).await.is_err());
    }
    assert_eq!(service.oneshot(request(None)).await.unwrap().status(), 200);
}

/// Bodies that can hold others will do, each in its own place.
#[tokio::test]
async fn other_bodies() {
    async fn one<Req: AnyBody + Default, Res: AnyBody + Default>() {
        let inner =
            service_fn(async |_: Request<Req>| Ok::<_, BoxError>(Response::new(Res::default())));
        let service = limit(rules(BY_IP), store().0).layer(inner);
        let request = Request::get("/").body(Req::default()).unwrap();
        assert_eq!(service.oneshot(request).await.unwrap().status(), 200);
    }
    one::<Body, axum::body::Body>().await;
    one::<axum::body::Body, UnsyncBoxBody<Bytes, BoxError>>().await;
    #[cfg(feature = "tonic")]
    one::<tonic::body::Body, tonic::body::Body>().await;
}
