//! Callers by HTTP/2, many on one connection, in a queue.

use std::time::{Duration, Instant};

use bytes::Bytes;
use dashpot_testkit::process::until;
use h2::Reason;
use h2::client::{ResponseFuture, SendRequest};
use http::Request;
use http::response::Parts;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::backend::Backend;
use crate::caller::PATIENCE;
use crate::pace::{assert_paced, await_sum};
use crate::proxy::Proxy;

const HALF: Duration = Duration::from_millis(500);
const RULES: &str =
    "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'\nqueue = 5\n";

/// A connection by prior knowledge, driven by a thread of its runtime.
pub(crate) struct Connection {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
}

pub(crate) type Stream = (ResponseFuture, h2::SendStream<Bytes>);

impl Connection {
    pub(crate) fn to(proxy: &Proxy) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let requests = runtime.block_on(async {
            let stream = TcpStream::connect(proxy.address).await.unwrap();
            let (requests, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            requests
        });
        Self { runtime, requests }
    }

    pub(crate) fn send(&mut self, path: &str) -> Stream {
        let request = Request::get(format!("http://localhost{path}")).body(()).unwrap();
        let requests = self.requests.clone();
        self.runtime.block_on(async {
            let mut ready = requests.ready().await.unwrap();
            ready.send_request(request, true).unwrap()
        })
    }

    /// Sends a head and some of a body that goes on.
    pub(crate) fn send_some(&mut self, path: &str) -> Stream {
        let request = Request::post(format!("http://localhost{path}")).body(()).unwrap();
        let requests = self.requests.clone();
        self.runtime.block_on(async {
            let mut ready = requests.ready().await.unwrap();
            let (answer, mut stream) = ready.send_request(request, false).unwrap();
            stream.send_data(Bytes::from_static(b"some of it"), false).unwrap();
            (answer, stream)
        })
    }

    /// One behind the other: the first leaves at once.
    fn wait_in_line(&mut self, proxy: &Proxy, backend: &Backend, count: usize) -> Vec<Stream> {
        let mut streams = Vec::new();
        for nth in 0..count {
            streams.push(self.send(&format!("/{nth}")));
            await_sum(&[proxy], backend, nth + 1);
        }
        streams
    }

    pub(crate) fn status(&self, stream: Stream) -> u16 {
        let answer = self.runtime.block_on(async { timeout(PATIENCE, stream.0).await });
        answer.expect("an answer in time").unwrap().status().as_u16()
    }

    /// Sends this and says what came: its head, and the bytes of its body.
    pub(crate) fn ask(&mut self, request: Request<()>) -> (Parts, Vec<u8>) {
        let requests = self.requests.clone();
        let asking = async {
            let (answer, _) = requests.ready().await.unwrap().send_request(request, true).unwrap();
            let (head, mut stream) = answer.await.unwrap().into_parts();
            let mut body = Vec::new();
            while let Some(some) = stream.data().await {
                let some = some.unwrap();
                stream.flow_control().release_capacity(some.len()).unwrap();
                body.extend_from_slice(&some);
            }
            (head, body)
        };
        self.runtime.block_on(async { timeout(PATIENCE, asking).await.expect("an answer in time") })
    }
}

#[test]
fn streams_of_one_connection_wait_in_the_order_they_came() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, RULES);
    let mut connection = Connection::to(&proxy);
    let sent = Instant::now();
    let streams = connection.wait_in_line(&proxy, &backend, 5);
    // The sixth has the last place, and there is none for the seventh.
    let sixth = connection.send("/5");
    await_sum(&[&proxy], &backend, 6);
    let seventh = connection.send("/denied");
    assert_eq!(connection.status(seventh), 429);
    assert!(sent.elapsed() < HALF, "at once, and not in its turn: {:?}", sent.elapsed());
    for stream in streams.into_iter().chain([sixth]) {
        assert_eq!(connection.status(stream), 200);
    }
    assert_eq!(backend.paths(), ["/0", "/1", "/2", "/3", "/4", "/5"]);
    assert_paced(&backend.seen(), sent, HALF, 0);
}

#[test]
fn a_stream_that_is_reset_leaves_the_line() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, RULES);
    let mut connection = Connection::to(&proxy);
    let sent = Instant::now();
    let mut streams = connection.wait_in_line(&proxy, &backend, 5);
    for leaver in [3, 1] {
        let (_, mut stream) = streams.remove(leaver);
        stream.send_reset(Reason::CANCEL);
    }
    proxy.await_queued(2);
    assert!(sent.elapsed() < HALF, "the machine is too slow for this: {:?}", sent.elapsed());
    streams.push(connection.send("/new"));
    for stream in streams {
        assert_eq!(connection.status(stream), 200);
    }
    assert_eq!(backend.paths(), ["/0", "/2", "/4", "/new"]);
    assert_paced(&backend.seen(), sent, HALF, 0);
}

#[test]
fn a_stream_that_is_reset_within_its_body_leaves_the_line() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, RULES);
    let mut connection = Connection::to(&proxy);
    let sent = Instant::now();
    let first = connection.send("/first");
    backend.await_count(1);
    let (_, mut stream) = connection.send_some("/leaver");
    proxy.await_queued(1);
    let last = connection.send("/last");
    proxy.await_queued(2);
    stream.send_reset(Reason::CANCEL);
    proxy.await_queued(1);
    assert!(sent.elapsed() < HALF, "it is noticed too late: {:?}", sent.elapsed());
    assert_eq!((connection.status(first), connection.status(last)), (200, 200));
    assert_eq!(backend.paths(), ["/first", "/last"]);
    assert_paced(&backend.seen(), sent, HALF, 0);
}

#[test]
fn all_leave_the_line_with_their_connection() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, RULES);
    let mut connection = Connection::to(&proxy);
    let mut other = Connection::to(&proxy);
    let sent = Instant::now();
    let streams = connection.wait_in_line(&proxy, &backend, 5);
    let last = other.send("/other");
    proxy.await_queued(5);
    drop(streams);
    connection.runtime.shutdown_background();
    proxy.await_queued(1);
    assert!(sent.elapsed() < HALF, "the machine is too slow for this: {:?}", sent.elapsed());
    assert_eq!(other.status(last), 200);
    assert_eq!(backend.paths(), ["/0", "/other"]);
    assert_paced(&backend.seen(), sent, HALF, 0);
}

#[test]
fn a_stream_that_is_reset_gives_its_permit_back() {
    let backend = Backend::answering(|_, stream| {
        let _ = std::io::Read::read(stream, &mut [0]);
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let rules = "[[rule]]\nname = 'one'\nlimits = ['1 concurrent']\n";
    let proxy = Proxy::by(&backend, rules);
    let mut connection = Connection::to(&proxy);
    for nth in 1..=3 {
        let (_, mut stream) = until("a place", PATIENCE, || {
            let stream = connection.send("/");
            // Who is denied is told so, and nobody else is told anything.
            let denied = connection.runtime.block_on(async {
                let (answer, stream) = stream;
                match timeout(Duration::from_millis(100), answer).await {
                    Ok(_) => Err(()),
                    Err(_) => Ok(stream),
                }
            });
            denied.ok().map(|stream| ((), stream))
        });
        assert_eq!(backend.count(), nth);
        stream.send_reset(Reason::CANCEL);
    }
}

/// A line holds up nobody else on the same connection.
#[test]
fn other_streams_are_served_meanwhile() {
    let backend = Backend::start();
    let rules = RULES.replace("2/s", "1/min").replace("queue", "match = { path = '/q/*' }\nqueue");
    let proxy = Proxy::by(&backend, &rules);
    let mut connection = Connection::to(&proxy);
    let waiting: Vec<_> = (0..4).map(|nth| connection.send(&format!("/q/{nth}"))).collect();
    await_sum(&[&proxy], &backend, 4);
    for _ in 0..20 {
        let stream = connection.send("/other");
        assert_eq!(connection.status(stream), 200);
    }
    assert_eq!(backend.count(), 21);
    drop(waiting);
}
