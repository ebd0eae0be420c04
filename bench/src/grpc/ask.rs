//! Asking: once, to see that an answer is right, and by `h2load`, to see how many there are.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use bytes::{BufMut, Bytes};
use h2::client::handshake;
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::Builder;

use crate::servers::at;

/// What comes before a message: whether it is compressed, and how long it is.
const PREFIX: usize = 5;

/// A message as it is sent.
pub(crate) fn frame(message: &impl Message) -> Vec<u8> {
    let mut frame = vec![0];
    frame.put_u32(u32::try_from(message.encoded_len()).expect("a short message"));
    message.encode(&mut frame).expect("a vector grows");
    frame
}

/// What is answered to a frame: a message, or why there is none.
pub(crate) fn once(port: u16, path: &str, frame: &[u8]) -> Result<Bytes, Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut client, connection) = handshake(TcpStream::connect(at(port)).await?).await?;
        tokio::spawn(connection);
        let request = Request::post(format!("http://{}{path}", at(port)))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let (response, mut sending) = client.send_request(request, false)?;
        sending.send_data(Bytes::copy_from_slice(frame), true)?;
        let (head, mut body) = response.await?.into_parts();
        let mut told = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            told.extend_from_slice(&data);
        }
        let trailers = body.trailers().await?;
        let status = trailers.as_ref().unwrap_or(&head.headers).get("grpc-status");
        if status.is_none_or(|status| status != "0") || told.len() < PREFIX {
            return Err(format!("{head:?} {trailers:?}").into());
        }
        Ok(Bytes::from(told).slice(PREFIX..))
    })
}

/// What `h2load` says of a run.
pub(crate) struct Load {
    pub(crate) rate: f64,
    /// How many were answered, all of them with 200.
    answers: f64,
    /// Their bodies.
    bytes: f64,
}

impl Load {
    /// Errors have no body, and are 200 all the same.
    pub(crate) fn is_of(&self, answer: &[u8]) -> bool {
        self.bytes > self.answers * (PREFIX + answer.len()) as f64 * 0.75
    }
}

/// Asks for some seconds. With a log, the microseconds of each answer are in its third column.
pub(crate) fn load(
    port: u16,
    path: &str,
    frame: &Path,
    seconds: u32,
    log: Option<&Path>,
) -> Result<Load, String> {
    let mut command = Command::new("h2load");
    command.args(["-t1", "-c8", "-m16", &format!("-D{seconds}")]);
    command.args(["-H", "content-type: application/grpc", "-H", "te: trailers", "-d"]).arg(frame);
    if let Some(log) = log {
        command.arg("--log-file").arg(log);
    }
    command.arg(format!("http://{}{path}", at(port)));
    let output = command.output().expect("h2load, which is in Debian's nghttp2-client");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    understand(&told).ok_or(told)
}

/// ```text
/// finished in 2.00s, 61234.50 req/s, 2.51MB/s
/// requests: 122469 total, 122597 started, 122469 done, 122469 succeeded, 0 failed, 0 errored, 0 timeout
/// status codes: 122469 2xx, 0 3xx, 0 4xx, 0 5xx
/// traffic: 5.02MB (5266167) total, 2.10MB (2204442) headers (space savings 60.87%), 1.75MB (1837035) data
/// ```
fn understand(told: &str) -> Option<Load> {
    let line = |name: &str| told.lines().find_map(|line| line.strip_prefix(name));
    // The word before this one, less what is around it.
    let before = |name: &str, word: &str| -> Option<f64> {
        let words: Vec<&str> = line(name)?.split_whitespace().collect();
        let place = words.iter().position(|one| one.trim_end_matches(',') == word)?;
        words.get(place.checked_sub(1)?)?.trim_matches(['(', ')']).parse().ok()
    };
    let answers = before("requests:", "done")?;
    let is_well = answers > 0.0
        && before("requests:", "succeeded")? == answers
        && before("requests:", "errored")? == 0.0
        // One whose head came before the end and whose message did not is 2xx, and not done.
        && before("status codes:", "2xx")? >= answers
        && before("status codes:", "3xx")? == 0.0
        && before("status codes:", "4xx")? == 0.0
        && before("status codes:", "5xx")? == 0.0;
    let rate = before("finished in", "req/s")?;
    let bytes = before("traffic:", "data")?;
    is_well.then_some(Load { rate, answers, bytes })
}

/// How long half and 99 of 100 took, in milliseconds.
pub(crate) fn latencies(log: &Path) -> [f64; 2] {
    let log = fs::read_to_string(log).unwrap_or_default();
    let third = |line: &str| line.split('\t').nth(2)?.parse::<u64>().ok();
    let mut micros: Vec<u64> = log.lines().filter_map(third).collect();
    micros.sort_unstable();
    [0.5, 0.99].map(|part| {
        let place = (micros.len() as f64 * part) as usize;
        micros.get(place).map_or(f64::NAN, |&micros| micros as f64 / 1e3)
    })
}
