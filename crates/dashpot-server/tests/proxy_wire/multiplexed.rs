//! A caller that speaks HTTP/2, one step after the other.

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::client::PATIENCE;

/// A connection. It is driven by a thread of its own.
pub(crate) struct Multiplexed {
    requests: SendRequest<Bytes>,
    runtime: Runtime,
}

/// A request that is under way.
pub(crate) struct Asked<'a> {
    pub(crate) sending: SendStream<Bytes>,
    answer: ResponseFuture,
    runtime: &'a Runtime,
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) head: Response<()>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

/// To `example.com`.
pub(crate) fn request(method: &str, target: &str) -> Request<()> {
    let uri = format!("http://example.com{target}");
    Request::builder().method(method).uri(uri).body(()).unwrap()
}

impl Multiplexed {
    /// By prior knowledge.
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::over(async move { TcpStream::connect(address).await.unwrap() })
    }

    pub(crate) fn over<S>(connect: impl Future<Output = S>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let requests = within(&runtime, async {
            let (requests, connection) = h2::client::handshake(connect.await).await.unwrap();
            tokio::spawn(connection);
            requests
        });
        Self { requests, runtime }
    }

    /// Without a body.
    pub(crate) fn ask(&self, request: Request<()>) -> Asked<'_> {
        self.begin(request, true)
    }

    /// With a body, which is still to be sent, unless this is the end.
    pub(crate) fn begin(&self, request: Request<()>, end: bool) -> Asked<'_> {
        let ready = within(&self.runtime, self.requests.clone().ready());
        let (answer, sending) = ready.unwrap().send_request(request, end).unwrap();
        Asked { sending, answer, runtime: &self.runtime }
    }
}

impl Asked<'_> {
    pub(crate) fn data(&mut self, bytes: impl Into<Vec<u8>>, end: bool) {
        self.sending.send_data(Bytes::from(bytes.into()), end).unwrap();
    }

    /// The answer's head; the body comes after.
    #[track_caller]
    pub(crate) fn head(&mut self) -> Response<RecvStream> {
        match self.try_head() {
            Ok(answer) => answer,
            Err(error) => panic!("no answer: {error}"),
        }
    }

    pub(crate) fn try_head(&mut self) -> Result<Response<RecvStream>, h2::Error> {
        within(self.runtime, &mut self.answer)
    }

    /// What comes next of the body; nothing at its end, which may be told by an empty piece.
    pub(crate) fn piece(&self, body: &mut RecvStream) -> Result<Option<Bytes>, h2::Error> {
        while let Some(piece) = within(self.runtime, body.data()).transpose()? {
            body.flow_control().release_capacity(piece.len()).unwrap();
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    #[track_caller]
    pub(crate) fn answer(mut self) -> Answered {
        let (head, mut rest) = self.head().into_parts();
        let mut body = Vec::new();
        loop {
            match self.piece(&mut rest) {
                Ok(Some(piece)) => body.extend(piece),
                Ok(None) => break,
                Err(error) => panic!("{error} after {} bytes of {head:?}", body.len()),
            }
        }
        let trailers = within(self.runtime, rest.trailers()).unwrap();
        Answered { head: Response::from_parts(head, ()), body, trailers }
    }
}

impl Answered {
    pub(crate) fn status(&self) -> u16 {
        self.head.status().as_u16()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.head.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }

    /// It is an answer of the gateway's own, with this status.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16) {
        assert_eq!(self.status(), status, "{self:?}");
        assert_eq!(self.all("content-type"), ["application/problem+json"], "{self:?}");
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], status, "{problem}");
    }
}

/// Nothing is waited for without end.
#[track_caller]
fn within<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(async { timeout(PATIENCE, work).await });
    done.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain"))
}
