//! Envoy's rate limit service: calls as protobuf and as JSON, and files of envoyproxy/ratelimit.

use std::sync::LazyLock;

use bytes::Bytes;
use dashpot::Algorithm;
use dashpot_rules::OnStoreError;
use prost::Message;
use serde::Deserialize;

use super::compile::{Terms, compile};
use super::frame::{FrameError, PREFIX, pack, unpack};
use super::json::{Call, Told};
use super::limits::{HashMap, Limits};
use super::message::{
    Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, RateLimitResponse,
};
use crate::serve::body;

const TERMS: Terms = Terms {
    algorithm: Algorithm::FixedWindow,
    on_store_error: OnStoreError::Allow,
    on_redis: false,
};

/// As much as a file may say.
const FILE: &str = include_str!("../corpus/envoy_yaml/whole.yaml");

static LIMITS: LazyLock<Limits> = LazyLock::new(|| limits(FILE).expect("the file is right"));

fn limits(text: &str) -> Result<Limits, String> {
    let sources = [("file.yaml".to_owned(), text.to_owned())];
    compile(&sources, TERMS, &HashMap::default()).map_err(|problems| problems.to_string())
}

/// The longest message: shorter than in the program, so that inputs can be longer.
const MESSAGE_MAX: usize = 2048;

/// A body as gRPC has it: a frame, or bytes that call themselves one. A message begins with no 0, so neither is the other.
pub fn survives_body(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let unpacked = unpack(body.clone(), MESSAGE_MAX);
    let meant = match data {
        [0, a, b, c, d, rest @ ..] => match u32::from_be_bytes([*a, *b, *c, *d]) as usize {
            said if said > MESSAGE_MAX => Err(FrameError::TooLong),
            said if said > rest.len() => Err(FrameError::Early),
            said if said < rest.len() => Err(FrameError::Several),
            _ => Ok(rest),
        },
        [_, _, _, _, _, ..] => Err(FrameError::Compressed),
        _ => Err(FrameError::Nothing),
    };
    assert_eq!(unpacked.as_deref().map_err(|error| *error), meant);
    match unpacked {
        Ok(message) => {
            // It is a part of what came, and no room was made for what it says.
            assert!(message.is_empty() || message.as_ptr() == body[PREFIX..].as_ptr());
            survives_call(&message);
        }
        Err(_) => survives_call(data),
    }
}

/// What we frame is one message, and neither less nor more of it is.
fn is_framed(call: &RateLimitRequest, message: &[u8]) {
    let framed = pack(call);
    assert_eq!(unpack(framed.clone(), message.len()).as_deref(), Ok(message));
    for end in [0, PREFIX - 1, framed.len() - 1] {
        assert!(unpack(framed.slice(..end), message.len()).is_err(), "{end} bytes of {framed:?}");
    }
    let more = Bytes::from([&framed, &b"\0"[..]].concat());
    assert_eq!(unpack(more, message.len()), Err(FrameError::Several));
    if let Some(less) = message.len().checked_sub(1) {
        assert_eq!(unpack(framed, less), Err(FrameError::TooLong));
    }
}

/// A call as protobuf: what was understood is written as it was understood.
fn survives_call(data: &[u8]) {
    let Ok(call) = RateLimitRequest::decode(data) else { return };
    is_framed(&call, &call.encode_to_vec());
    let again = RateLimitRequest::decode(&*call.encode_to_vec()).expect("what we wrote is read");
    assert_eq!(call, again);
    finds(&call);
    // It means the same as JSON, where units below nothing cannot be written.
    let is_below = |limit: &RateLimitOverride| limit.unit < 0;
    if call.descriptors.iter().any(|one| one.limit.as_ref().is_some_and(is_below)) {
        return;
    }
    let json = body::read::<Call>(as_json(&call).as_bytes()).expect("as JSON it is one, too");
    assert_eq!(RateLimitRequest::from(json), call);
    // The same bytes as an answer, which is what `POST /json` writes.
    if let Ok(answer) = RateLimitResponse::decode(data) {
        let told = serde_json::to_string(&Told::from(&answer)).expect("an answer is JSON");
        assert!(told.contains("overallCode"));
    }
}

/// A call as JSON: what was understood is written to the same bytes as Envoy's would be.
pub fn survives_json(data: &[u8]) {
    let Ok(json) = body::read::<Call>(data) else { return };
    let call = RateLimitRequest::from(json);
    let again = RateLimitRequest::decode(&*call.encode_to_vec()).expect("what we wrote is read");
    assert_eq!(call, again);
    finds(&call);
}

/// Limits are found by descriptors, with places for shared values that are there.
fn finds(call: &RateLimitRequest) {
    for descriptor in &call.descriptors {
        if let Some(found) = LIMITS.find(&call.domain, &descriptor.entries) {
            assert!(LIMITS.knows(&call.domain));
            assert!(found.shared.iter().all(|(place, _)| *place < descriptor.entries.len()));
        }
    }
}

/// By proto3's mapping: numbers of 64 bits are texts.
fn as_json(call: &RateLimitRequest) -> String {
    let descriptor = |one: &RateLimitDescriptor| {
        let entry = |entry: &Entry| serde_json::json!({ "key": entry.key, "value": entry.value });
        let limit = one.limit.map(|limit| {
            serde_json::json!({ "requestsPerUnit": limit.requests_per_unit, "unit": limit.unit })
        });
        serde_json::json!({
            "entries": one.entries.iter().map(entry).collect::<Vec<_>>(),
            "limit": limit,
            "hitsAddend": one.hits_addend.map(|hits| hits.to_string()),
            "isNegativeHits": one.is_negative_hits,
        })
    };
    let descriptors: Vec<_> = call.descriptors.iter().map(descriptor).collect();
    let domain = &call.domain;
    serde_json::json!({ "domain": domain, "descriptors": descriptors, "hits_addend": call.hits_addend })
        .to_string()
}

/// A file: limits, or mistakes with a place in it.
pub fn survives_yaml(text: &str) {
    match limits(text) {
        Ok(read) => {
            let names: Vec<_> = read.rules().iter().map(|rule| rule.name().to_owned()).collect();
            let again = limits(text).expect("it was right a moment ago");
            assert!(again.rules().iter().map(|rule| rule.name()).eq(names.iter()));
        }
        Err(told) => {
            let lines = text.split(['\n', '\r']).count().max(1);
            for problem in told.lines().filter(|line| line.starts_with("file.yaml:")) {
                let mut place = problem["file.yaml:".len()..].split(':');
                let line = place.next().and_then(|line| line.parse::<usize>().ok());
                assert!(line.is_none_or(|line| (1..=lines + 1).contains(&line)), "{problem}");
            }
            assert!(!told.is_empty());
        }
    }
    // Whatever it is as YAML, it is a value, too, or none: the library's bounds hold.
    let _ = serde_saphyr::from_str::<Any>(text);
}

#[derive(Deserialize)]
struct Any {}
