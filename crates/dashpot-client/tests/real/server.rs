//! A server that does as it is told, and notes what came.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use dashpot_client::{Manners, MannersBuilder};
use http::{Method, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Bytes,
}

/// What is answered: nothing, ever, if it is none.
pub(crate) type Reply = Option<Response<Body>>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    count: watch::Receiver<usize>,
}

impl Server {
    /// One that answers like this, by how many came before.
    pub(crate) async fn start(
        reply: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        Self::listen(listener, reply)
    }

    pub(crate) fn listen(
        listener: TcpListener,
        reply: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let (sender, count) = watch::channel(0);
        let (reply, notes) = (Arc::new(reply), seen.clone());
        let answer = move |request: Request| {
            let (reply, notes, sender) = (reply.clone(), notes.clone(), sender.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                let path = head.uri.path().to_owned();
                let one = Seen { method: head.method, path, body };
                let number = {
                    let mut notes = notes.lock().unwrap();
                    notes.push(one.clone());
                    notes.len() - 1
                };
                sender.send_replace(number + 1);
                match reply(number, &one) {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            }
        };
        let app = Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, seen, count }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen().into_iter().map(|one| one.path).collect()
    }

    /// Waits until so many came.
    pub(crate) async fn until_seen(&self, count: usize) {
        self.count.clone().wait_for(|seen| *seen >= count).await.unwrap();
    }
}

/// An answer without a body.
pub(crate) fn status(status: u16) -> Reply {
    Some(Response::builder().status(status).body(Body::empty()).unwrap())
}

pub(crate) fn text(text: &'static str) -> Reply {
    Some(Response::new(Body::from(text)))
}

pub(crate) fn redirect(status: u16, to: &str) -> Reply {
    let answer = Response::builder().status(status).header("location", to);
    Some(answer.body(Body::empty()).unwrap())
}

/// A body that begins, and never ends.
pub(crate) fn endless() -> Reply {
    let data = Some(Bytes::from_static(b"once upon a time"));
    Some(Response::new(Body::new(Chunk { data, ends: false })))
}

/// A body of which nobody knows how long it is before it ends.
pub(crate) fn chunked() -> Reply {
    let data = Some(Bytes::from_static(b"the end"));
    Some(Response::new(Body::new(Chunk { data, ends: true })))
}

struct Chunk {
    data: Option<Bytes>,
    ends: bool,
}

impl http_body::Body for Chunk {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.data.take() {
            Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// reqwest as it is.
pub(crate) fn plain() -> ::reqwest::Client {
    ::reqwest::Client::builder().no_proxy().build().unwrap()
}

/// reqwest with manners.
pub(crate) fn polite(manners: Manners) -> ClientWithMiddleware {
    ClientBuilder::new(plain()).with(manners).build()
}

/// Manners that do not wait long where nobody says how long.
pub(crate) fn quick() -> MannersBuilder {
    let short = std::time::Duration::from_millis(10);
    Manners::builder().seed(1).backoff(short, 2 * short)
}

/// Where somebody reads what is asked, and hangs up.
pub(crate) async fn hangs_up() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            connection.readable().await.unwrap();
            let _ = connection.try_read(&mut [0; 4096]);
        }
    });
    url
}
