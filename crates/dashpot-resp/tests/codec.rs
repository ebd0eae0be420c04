//! Commands as bytes, held to `redis-protocol`, which reads them in another way.

use dashpot_resp::{Limits, ProtocolError, Reader};
use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

/// What is read, where it ends.
type Read = Result<Option<(Vec<Vec<u8>>, usize)>, ProtocolError>;

fn ours(input: &[u8]) -> Read {
    // What stands between commands leads to the next.
    let mut at = 0;
    loop {
        let mut reader = Reader::default();
        match reader.read(&input[at..], Limits::KNOWN)? {
            Some((request, length)) if !request.is_empty() => {
                let arguments = request.arguments().map(<[u8]>::to_vec).collect();
                return Ok(Some((arguments, at + length)));
            }
            Some((_, length)) => at += length,
            None if at > 0 => return Ok(Some((vec![], at))),
            None => return Ok(None),
        }
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

/// What the oracle makes of it; nothing if it is no list of byte strings, or none that a server has to understand.
fn oracle(input: &[u8]) -> Option<Option<(Vec<Vec<u8>>, usize)>> {
    match decode(input) {
        Err(_) => None,
        Ok(None) => Some(None),
        Ok(Some((OwnedFrame::Array(items), length))) => {
            let bytes = |item| match item {
                OwnedFrame::BulkString(bytes) => Some(bytes),
                _ => None,
            };
            let arguments: Vec<Vec<u8>> = items.into_iter().map(bytes).collect::<Option<_>>()?;
            // It reads numbers that are written otherwise, too.
            let is_plain = frame(&arguments) == input[..length];
            (is_plain && !arguments.is_empty()).then_some(Some((arguments, length)))
        }
        Ok(Some(_)) => None,
    }
}

fn arguments() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..40), 1..9)
}

/// A right frame, and something done to it.
fn nearly_frames() -> impl Strategy<Value = Vec<u8>> {
    let harm = prop_oneof![
        3 => Just(None),
        4 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(Some),
        4 => (any::<prop::sample::Index>(), prop::sample::select(&b"*$\r\n0123456789-+: "[..])).prop_map(Some),
    ];
    (arguments(), harm, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(arguments, harm, cut, is_cut)| {
            let mut bytes = frame(&arguments);
            if let Some((at, byte)) = harm {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        },
    )
}

fn cases() -> ProptestConfig {
    let many = if std::env::var_os("DASHPOT_FULL").is_some() { 200_000 } else { 20_000 };
    ProptestConfig { cases: many, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn frames_are_read_as_another_reads_them(bytes in nearly_frames()) {
        prop_assume!(bytes.first() == Some(&b'*'));
        // After nothing, what follows may be a line.
        prop_assume!(!bytes.starts_with(b"*0") && !bytes.starts_with(b"*-"));
        let ours = ours(&bytes);
        match (oracle(&bytes), &ours) {
            (Some(Some(read)), ours) => prop_assert_eq!(ours, &Ok(Some(read))),
            // Who waits for more may be told before it comes that it is in vain.
            (Some(None), Ok(read)) => prop_assert_eq!(read, &None),
            (Some(None), Err(_)) => {}
            // What the other does not take, or takes for something else, is nothing here, or half of it.
            (None, Ok(Some((arguments, _)))) => prop_assert!(arguments.is_empty()),
            (None, _) => {}
        }
    }

    #[test]
    fn anything_is_read_to_some_end(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(Some((_, length))) = ours(&bytes) {
            prop_assert!(length > 0 && length <= bytes.len());
        }
    }

    #[test]
    fn a_pipeline_is_read_command_by_command(
        commands in vec(arguments(), 1..6),
        gaps in vec(0_usize..3, 6),
    ) {
        let mut bytes = Vec::new();
        for (command, gap) in commands.iter().zip(gaps) {
            bytes.extend_from_slice([&b""[..], b"\r\n", b"*0\r\n"][gap]);
            bytes.extend_from_slice(&frame(command));
        }
        let (mut at, mut found) = (0, Vec::new());
        while let Some((arguments, length)) = ours(&bytes[at..]).unwrap() {
            at += length;
            found.push(arguments);
        }
        prop_assert_eq!(at, bytes.len());
        prop_assert_eq!(found, commands);
    }
}

#[test]
fn a_frame_that_is_cut_anywhere_is_waited_for() {
    let command = [&b"CL.THROTTLE"[..], b"alice", b"15", b"30", b"60", b""].map(<[u8]>::to_vec);
    let whole = frame(&command);
    for end in 0..whole.len() {
        assert_eq!(ours(&whole[..end]), Ok(None), "{end}");
    }
    assert_eq!(ours(&whole), Ok(Some((command.to_vec(), whole.len()))));
    let line = b"CL.THROTTLE alice 15 30 60\r\n";
    for end in 0..line.len() {
        assert_eq!(ours(&line[..end]), Ok(None), "{end}");
    }
    assert_eq!(ours(line).unwrap().unwrap().1, line.len());
}

#[test]
fn what_cannot_be_right_is_told_before_it_is_all_there() {
    use ProtocolError::*;
    let long = "1".repeat(70_000);
    for (bytes, error) in [
        ("*a\r\n", Count),
        ("*+1\r\n", Count),
        ("*01\r\n", Count),
        ("*1 \r\n", Count),
        ("*\r\n", Count),
        ("*1\rx", Count),
        ("*1025\r\n", Count),
        ("*9223372036854775807\r\n", Count),
        ("*9223372036854775808\r\n", Count),
        ("*99999999999999999999999\r\n", Count),
        ("*1\r\n+", NoArgument(b'+')),
        ("*1\r\n*1\r\n", NoArgument(b'*')),
        ("*2\r\n$4\r\nPING\r\n:1\r\n", NoArgument(b':')),
        ("*1\r\n$-1\r\n", Length),
        ("*1\r\n$-9223372036854775808\r\n", Length),
        ("*1\r\n$a\r\n", Length),
        ("*1\r\n$\r\n", Length),
        ("*1\r\n$65537\r\n", Length),
        ("*1\r\n$18446744073709551615\r\n", Length),
        ("*1\r\n$4\r\nPINGx", NoEnd),
        ("*1\r\n$4\r\nPING\rx", NoEnd),
        ("\"PING\r\n", Quotes),
        ("PING 'a'b\r\n", Quotes),
        ("POST / HTTP/1.1\r\n", Http),
        ("host: 127.0.0.1\r\n", Http),
        (&format!("*{long}"), EndlessCount),
        (&format!("*1\r\n${long}"), EndlessLength),
        (&long, Line),
        (&format!("{long}\r\n"), Line),
        (&format!("ECHO{}\r\n", " x".repeat(1024)), Line),
    ] {
        assert_eq!(ours(bytes.as_bytes()), Err(error), "{}", &bytes[..bytes.len().min(40)]);
    }
    // Each is short enough, all of them are not.
    let most = format!("*3\r\n$40000\r\n{}\r\n$40000\r\n", "x".repeat(40_000));
    assert_eq!(ours(most.as_bytes()), Err(Bytes));
    let most = frame(&vec![b"x".to_vec(); 1024]);
    assert_eq!(ours(&most).unwrap().unwrap().0.len(), 1024);
}

#[test]
fn strangers_may_say_less() {
    let stranger = |bytes: &[u8]| {
        let mut reader = Reader::default();
        reader.read(bytes, Limits::STRANGER).map(|read| read.map(|(_, length)| length))
    };
    assert_eq!(stranger(b"*10\r\n"), Ok(None));
    assert_eq!(stranger(b"*11\r\n"), Err(ProtocolError::StrangersCount));
    assert_eq!(stranger(b"*1\r\n$16384\r\n"), Ok(None));
    assert_eq!(stranger(b"*1\r\n$16385\r\n"), Err(ProtocolError::StrangersLength));
    assert_eq!(stranger(b"*1000000\r\n"), Err(ProtocolError::Count));
}

#[test]
fn lines_are_read_with_their_quotes() {
    for (line, words) in [
        ("PING", &["PING"][..]),
        ("  PING   a\t b ", &["PING", "a", "b"]),
        (r#"ECHO "a b""#, &["ECHO", "a b"]),
        (r#"ECHO "a\n\x41\"\\""#, &["ECHO", "a\nA\"\\"]),
        (r"ECHO 'a\'b\n'", &["ECHO", r"a'b\n"]),
        (r#"ECHO a"b c""#, &["ECHO", "ab c"]),
        (r#"ECHO """#, &["ECHO", ""]),
        (r#"ECHO "\xzz""#, &["ECHO", "xzz"]),
    ] {
        for end in ["\n", "\r\n"] {
            let text = format!("{line}{end}");
            let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            assert_eq!(ours(text.as_bytes()), Ok(Some((words, text.len()))), "{line}");
        }
    }
    // Nothing is nothing, and leads to what follows.
    assert_eq!(ours(b"\r\n\n*0\r\n*-1\r\n"), Ok(Some((vec![], 12))));
    assert_eq!(ours(b"\r\nPING\r\n"), Ok(Some((vec![b"PING".to_vec()], 8))));
}
