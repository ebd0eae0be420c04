#![no_main]

//! Commands of Redis's protocol, held to `redis-protocol`, which reads them in another way.

use dashpot_resp::{Limits, ProtocolError, Reader};
use libfuzzer_sys::fuzz_target;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

/// What is read, and where it ends.
type Read = Result<Option<(Vec<Vec<u8>>, usize)>, ProtocolError>;

fuzz_target!(|data: &[u8]| {
    for limits in [Limits::KNOWN, Limits::STRANGER] {
        let mut at = 0;
        loop {
            let rest = &data[at..];
            let whole = read(rest, limits);
            cut_anywhere_is_the_same(rest, limits, &whole);
            match whole {
                Ok(Some((arguments, length))) => {
                    assert!((1..=rest.len()).contains(&length));
                    assert!(arguments.len() <= limits.arguments);
                    at += length;
                }
                Ok(None) | Err(_) => break,
            }
        }
    }
    agrees_with_another(data);
});

fn read(input: &[u8], limits: Limits) -> Read {
    let mut reader = Reader::default();
    let read = reader.read(input, limits)?;
    Ok(read.map(|(request, end)| (request.arguments().map(<[u8]>::to_vec).collect(), end)))
}

/// Who has not all of it waits, or sees the mistake that is there already; nobody reads something else.
fn cut_anywhere_is_the_same(input: &[u8], limits: Limits, whole: &Read) {
    let step = input.len() / 64 + 1;
    for end in (0..input.len()).step_by(step) {
        match (read(&input[..end], limits), whole) {
            (Ok(None), _) => {}
            (Ok(Some(part)), Ok(Some(whole))) => assert_eq!(&part, whole),
            (Err(part), Err(whole)) => assert_eq!(&part, whole),
            (part, whole) => panic!("{part:?} of what is {whole:?}"),
        }
    }
}

fn agrees_with_another(data: &[u8]) {
    // What is nothing to us leads to what follows, which may be a line.
    if !data.starts_with(b"*") || data.starts_with(b"*0") || data.starts_with(b"*-") {
        return;
    }
    let ours = read(data, Limits::KNOWN);
    match decode(data) {
        Ok(Some((OwnedFrame::Array(items), length))) => {
            let bytes = |item| match item {
                OwnedFrame::BulkString(bytes) => Some(bytes),
                _ => None,
            };
            let Some(arguments) = items.into_iter().map(bytes).collect::<Option<Vec<_>>>() else {
                return assert!(!matches!(ours, Ok(Some(_))), "{ours:?}");
            };
            // It reads numbers that are written otherwise, too.
            if frame(&arguments) == data[..length] && arguments.len() <= Limits::KNOWN.arguments {
                assert_eq!(ours, Ok(Some((arguments, length))));
            }
        }
        Ok(None) => assert!(matches!(ours, Ok(None) | Err(_)), "{ours:?}"),
        Ok(Some(_)) | Err(_) => assert!(!matches!(ours, Ok(Some(_))), "{ours:?}"),
    }
}

fn frame(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        frame.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        frame.extend_from_slice(argument);
        frame.extend_from_slice(b"\r\n");
    }
    frame
}
