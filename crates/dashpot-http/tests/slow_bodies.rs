//! Bodies that take their time: nobody is kept waiting for ever, and nobody gets around a limit by
//! being slow. Time passes when nothing else happens.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::common::{limit, rules, store};

/// A body that comes as it is fed. Its end is said, too: a feeder that goes is a caller that went.
struct Fed(UnboundedReceiver<Option<Bytes>>);

impl Body for Fed {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|fed| match fed {
            Some(Some(piece)) => Some(Ok(Frame::data(piece))),
            Some(None) => None,
            None => Some(Err("gone")),
        })
    }
}

type Slow = UnsyncBoxBody<Bytes, &'static str>;
type Echo = BoxCloneService<Request<Slow>, Response<()>, Infallible>;

/// Says by a header what it got: the whole body, or why not.
fn echo(limits: &str) -> Echo {
    let inner = service_fn(async |request: Request<Slow>| {
        let got = request.into_body().collect().await;
        let got = got.map_or_else(|error| error.as_bytes().into(), |body| body.to_bytes());
        let got = String::from_utf8(got.to_vec()).unwrap();
        let response = Response::builder().header("got", got);
        Ok::<_, Infallible>(response.body(Slow::default()).unwrap())
    });
    let text = format!("[[rule]]\nname = 'r'\nby = ['json:email']\nlimits = ['{limits}']");
    let service = limit(rules(&text), store().0).layer(inner);
    service.map_response(|response| response.map(drop)).boxed_clone()
}

fn request() -> (Request<Slow>, UnboundedSender<Option<Bytes>>) {
    let (feeder, food) = unbounded_channel();
    let request = Request::post("/").header("content-type", "application/json");
    (request.body(Fed(food).boxed_unsync()).unwrap(), feeder)
}

/// Feeds a body, with a pause before each piece.
fn feed(feeder: UnboundedSender<Option<Bytes>>, pause: u64, pieces: &[&str]) {
    let pieces: Vec<Bytes> =
        pieces.iter().map(|piece| Bytes::copy_from_slice(piece.as_bytes())).collect();
    tokio::spawn(async move {
        for piece in pieces {
            sleep(Duration::from_secs(pause)).await;
            let _ = feeder.send(Some(piece));
        }
        sleep(Duration::from_secs(pause)).await;
        let _ = feeder.send(None);
    });
}

async fn ask(service: &mut Echo, pause: u64, pieces: &[&str]) -> (u16, String) {
    let (request, feeder) = request();
    feed(feeder, pause, pieces);
    let response = service.ready().await.unwrap().call(request).await.unwrap();
    let got = response.headers().get("got").map_or("", |got| got.to_str().unwrap());
    (response.status().as_u16(), got.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_in_time_is_read() {
    let mut service = echo("1/min");
    let pieces = ["{\"em", "ail\":", "\"a@x.com\"}"];
    assert_eq!(ask(&mut service, 2, &pieces).await, (200, pieces.concat()));
    assert_eq!(ask(&mut service, 2, &pieces).await.0, 429);
    assert_eq!(ask(&mut service, 2, &["{\"email\":\"b@x.com\"}"]).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_late_is_not_waited_for_and_still_comes_whole() {
    let mut service = echo("1/min");
    let pieces = ["{", "\"email\"", ":", "\"a@x.com\"", "}"];
    assert_eq!(ask(&mut service, 4, &pieces).await, (200, pieces.concat()));
    // All who are late are one, whoever they say they are; and so are those who say nothing.
    for other in ["\"b@x.com\"", "\"c@x.com\""] {
        assert_eq!(ask(&mut service, 4, &["{", "\"email\"", ":", other, "}"]).await.0, 429);
    }
    assert_eq!(ask(&mut service, 0, &["{}"]).await.0, 429);
    // Who is in time has its own.
    assert_eq!(ask(&mut service, 0, &["{\"email\":\"a@x.com\"}"]).await.0, 200);
}

/// Patience is for the whole body: a byte now and then does not buy more of it.
#[tokio::test(start_paused = true)]
async fn a_trickle_is_not_waited_for() {
    let mut service = echo("0/min");
    let (request, feeder) = request();
    feed(feeder, 1, &["{"; 1000]);
    let start = Instant::now();
    let response = service.ready().await.unwrap().call(request).await.unwrap();
    assert_eq!(response.status(), 429);
    assert!(start.elapsed() <= Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A caller who goes away while its body is read was not served; the handler sees that it went.
#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_breaks_off_for_the_handler() {
    let mut service = echo("1/min");
    let (request, feeder) = request();
    feeder.send(Some(Bytes::from_static(b"{\"email\":"))).unwrap();
    drop(feeder);
    let response = service.ready().await.unwrap().call(request).await.unwrap();
    assert_eq!(response.headers()["got"], "gone");
    assert_eq!(ask(&mut service, 0, &["{}"]).await.0, 429);
}
