//! A handler that does what it is told.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use dashpot_http::Used;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(super) type Feeder = UnboundedSender<Bytes>;

/// What the handler has done, and what it waits for.
#[derive(Default)]
pub(super) struct Work {
    /// Those who hold go on by one of these each.
    pub(super) go: Option<Semaphore>,
    /// How often it was called.
    pub(super) called: AtomicU64,
    /// The values of `x-name`, in the order of the calls.
    pub(super) names: Mutex<Vec<String>>,
    pub(super) feeders: Mutex<Vec<Feeder>>,
}

impl Work {
    /// Does what `x-do` says, word by word.
    pub(super) async fn serve(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<Body>, &'static str> {
        self.called.fetch_add(1, Ordering::Relaxed);
        let (head, body) = request.into_parts();
        let header = |name: &str| {
            let value = head.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        self.names.lock().unwrap().push(header("x-name"));
        let (words, mut body) = (header("x-do"), Some(body));
        let mut response = Response::new(Body::from("served"));
        for word in words.split_whitespace() {
            match word.split_once('=').unwrap_or((word, "")) {
                ("hold", _) => self.go.as_ref().unwrap().acquire().await.unwrap().forget(),
                ("status", code) => *response.status_mut() = code.parse::<StatusCode>().unwrap(),
                ("used", used) => {
                    let _ = response.extensions_mut().insert(Used(used.parse().unwrap()));
                }
                ("fail", _) => return Err("failed"),
                ("panic", _) => panic!("on purpose"),
                ("stream", _) => {
                    let (feeder, food) = unbounded_channel();
                    self.feeders.lock().unwrap().push(feeder);
                    *response.body_mut() = Body::new(Fed(food));
                }
                ("echo", _) => {
                    let body = body.take().unwrap().collect().await.map_err(|_| "no body")?;
                    *response.body_mut() = Body::from(body.to_bytes());
                }
                _ => panic!("{word}?"),
            }
        }
        Ok(response)
    }
}

/// A body that comes as it is fed, and ends when its feeder goes.
pub(super) struct Fed(pub(super) UnboundedReceiver<Bytes>);

impl http_body::Body for Fed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
