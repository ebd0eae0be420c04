//! A body that went on being read for an attempt that was over, so that the next began in its middle.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use dashpot_client::{BoxError, Manners, Polite, Replay, ReplayError};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use tower::{ServiceExt, service_fn};

use crate::common::{World, answer, millis};

/// Eight pieces of 16 KiB, each with its number: more than is kept.
#[derive(Default)]
struct Pieces(u8);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0 == 8 {
            return Poll::Ready(None);
        }
        self.0 += 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![self.0; 16 * 1024])))))
    }
}

#[derive(Default)]
struct Seen {
    /// The body of the first attempt, as a connection has it that goes on sending.
    first: Option<Replay<Pieces>>,
    /// What the first attempt was given after it was over.
    after: Option<Result<(), String>>,
    /// Which pieces the second attempt had.
    second: Vec<u8>,
}

#[test]
fn the_second_attempt_has_all_of_the_body_or_none() {
    let mut world = World::new();
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let noted = seen.clone();
    let server = service_fn(move |request: Request<Replay<Pieces>>| {
        let seen = noted.clone();
        async move {
            let mut body = request.into_body();
            let is_first = seen.lock().unwrap().first.is_none();
            if is_first {
                body.frame().await.unwrap()?;
                seen.lock().unwrap().first = Some(body);
                return answer(503, &[("retry-after", "1")]);
            }
            while let Some(frame) = body.frame().await {
                let piece = frame?.into_data().unwrap()[0];
                seen.lock().unwrap().second.push(piece);
            }
            Ok::<Response<Full<Bytes>>, BoxError>(Response::default())
        }
    });
    // While the call waits, the connection wants to send on.
    let (reader, wake) = (seen.clone(), world.clock.sleep(millis(500)));
    world.spawn(async move {
        wake.await;
        let mut body = reader.lock().unwrap().first.take().unwrap();
        let mut last = Ok(());
        for _ in 0..5 {
            last = body.frame().await.unwrap().map(drop);
        }
        let is_gone = matches!(last, Err(ReplayError::Gone));
        let mut seen = reader.lock().unwrap();
        seen.after = Some(last.map_err(|error| error.to_string()));
        seen.first = Some(body);
        assert!(is_gone, "{:?}", seen.after);
    });
    let manners = Manners::builder().clock(world.clock.clone()).build();
    let request = Request::put("http://example.com/").body(Pieces::default()).unwrap();
    let polite = Polite::new(server, manners);
    let response = world.wait_for(polite.oneshot(request)).unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(seen.lock().unwrap().second, [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// Breaks at once.
struct Broken;

impl Body for Broken {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(Some(Err("the disk is gone")))
    }
}

/// Polled once more after it broke, a body ended as if it were whole.
#[test]
fn a_body_that_broke_does_not_end_well() {
    let mut world = World::new();
    let server = service_fn(|request: Request<Replay<Broken>>| async move {
        let mut body = request.into_body();
        let broken = body.frame().await.unwrap().unwrap_err();
        assert_eq!(broken.to_string(), "the disk is gone");
        for _ in 0..2 {
            assert!(!body.is_end_stream());
            let after = body.frame().await.expect("it is not over").unwrap_err();
            assert!(matches!(after, ReplayError::Gone), "{after:?}");
        }
        answer(200, &[])
    });
    let manners = Manners::builder().clock(world.clock.clone()).build();
    let request = Request::put("http://example.com/").body(Broken).unwrap();
    let response = world.wait_for(Polite::new(server, manners).oneshot(request)).unwrap();
    assert_eq!(response.status(), 200);
}
