//! Who calls as Envoy does: its rate limit service, by gRPC, written out by hand, since it is one short message.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::{SendRequest, handshake};
use http::{HeaderMap, Request};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::callers::{PATIENCE, chance, number, wait_for_next};
use crate::fleet::Door;
use crate::judge::{Answer, Asked};
use crate::rules::GRPC;
use crate::soak::Soak;

const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
/// The status that says that the store does not answer.
const UNAVAILABLE: &str = "14";

type Wrong = Box<dyn std::error::Error + Send + Sync>;

pub(crate) fn call(soak: &Arc<Soak>, door: Door) {
    let (soak, mut random) = (soak.clone(), chance(soak));
    soak.expect(GRPC.name, GRPC, door);
    soak.runtime.clone().spawn(async move {
        let mut connection = None;
        while !soak.is_over() {
            wait_for_next(&mut random, GRPC.calls).await;
            let sent = soak.now();
            let asked =
                timeout(PATIENCE, ask(&mut connection, &soak.fleet.member(door).grpc)).await;
            let answer = match asked.unwrap_or_else(|_| Err("too late".into())) {
                Ok(answer) => answer,
                Err(error) => {
                    connection = None;
                    Answer::Failed(error.to_string())
                }
            };
            let limits = vec![(GRPC.name.to_owned(), GRPC)];
            Asked { door, limits, sent, call: number(), by_network: false }.judge(&soak, answer);
        }
    });
}

async fn ask(kept: &mut Option<SendRequest<Bytes>>, address: &str) -> Result<Answer, Wrong> {
    // One that was closed while nobody asked is no failure.
    let fresh = match kept.take() {
        Some(connection) => connection.ready().await.ok(),
        None => None,
    };
    let mut connection = match fresh {
        Some(connection) => connection,
        None => connect(address).await?.ready().await?,
    };
    let request = Request::post(format!("http://{address}{METHOD}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let (answer, mut body) = connection.send_request(request, false)?;
    *kept = Some(connection);
    body.send_data(question(), true)?;
    let answer = answer.await?;
    if let Some(status) = status(answer.headers()) {
        return Ok(by_status(&status, &[]));
    }
    let mut body = answer.into_body();
    let mut said = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        said.extend_from_slice(&data);
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    let status = status(&trailers).ok_or_else(|| io::Error::other("no status"))?;
    Ok(by_status(&status, &said))
}

async fn connect(address: &str) -> Result<SendRequest<Bytes>, Wrong> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (connection, driver) = handshake(stream).await?;
    tokio::spawn(driver);
    Ok(connection)
}

fn status(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("grpc-status")?.to_str().ok()?.to_owned())
}

/// What is said begins with whether it is compressed and how long it is, and then with `overall_code`: OK or OVER_LIMIT.
fn by_status(status: &str, said: &[u8]) -> Answer {
    match (status, said.get(5..7)) {
        ("0", Some([0x08, 1])) => Answer::Allowed,
        ("0", Some([0x08, 2])) => Answer::Denied,
        (UNAVAILABLE, _) => Answer::Unavailable,
        _ => Answer::Unexpected(format!("grpc-status {status}, {said:02x?}")),
    }
}

/// `domain: "grpc", descriptors: [{entries: [{key: "who", value: "all"}]}]`
fn question() -> Bytes {
    let entry = [field(1, b"who"), field(2, b"all")].concat();
    let descriptor = field(1, &entry);
    let message = [field(1, b"grpc"), field(2, &descriptor)].concat();
    let prefix = [0, 0, 0, 0, message.len() as u8];
    [&prefix, message.as_slice()].concat().into()
}

/// Of bytes, fewer than 128.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, value.len() as u8], value].concat()
}
