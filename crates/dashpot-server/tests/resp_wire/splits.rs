//! Networks cut bytes where they like.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::reply::shown;
use crate::scene::{Scene, all, framed, words};

/// Commands of all sorts about this key, and `QUIT`.
fn mixed(key: &str) -> Vec<u8> {
    let mut bytes = all(&["PING", &format!("CL.THROTTLE {key} 5 1 3600")]);
    bytes.extend(b"PING\r\n\r\n*0\r\n*-1\r\n");
    bytes.extend(format!("cl.throttle {key} 5 1 3600 '2'\n").as_bytes());
    bytes.extend(framed(&[b"ECHO".as_slice(), b"a\r\n$3\r\n\0b"]));
    bytes.extend(b"ECHO \"a\\x41 \\\"b\"\r\n");
    bytes.extend(framed(&["ECHO", ""]));
    bytes.extend(all(&["NOSUCH a b", "HELLO 3", "CLIENT GETNAME"]));
    bytes.extend(words("QUIT"));
    bytes
}

/// A key as long as all others, that nobody has used.
fn fresh() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("key{:06}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What is answered to these pieces, with a moment between them in which they may be read.
fn answered(scene: &Scene, pieces: &[&[u8]], moment: Duration) -> Vec<u8> {
    let mut wire = scene.connect();
    for (nth, piece) in pieces.iter().enumerate() {
        if nth > 0 {
            thread::sleep(moment);
        }
        // It may have heard enough.
        wire.try_send(piece);
    }
    without_id(wire.rest())
}

/// `HELLO` tells the connection's id, which is nobody else's.
fn without_id(mut bytes: Vec<u8>) -> Vec<u8> {
    let id = b"$2\r\nid\r\n:";
    if let Some(at) = bytes.windows(id.len()).position(|found| found == id) {
        let digits = bytes[at + id.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        bytes.drain(at + id.len()..at + id.len() + digits);
    }
    bytes
}

/// The same in one piece, in two of all sizes, and byte by byte; several at a time, since most of it is waiting.
#[track_caller]
fn cut_anywhere(make: impl Fn(&str) -> Vec<u8> + Sync) -> Vec<u8> {
    let scene = Scene::start(&[]);
    let length = make(&fresh()).len();
    let whole = answered(&scene, &[&make(&fresh())], Duration::ZERO);
    println!("{}", shown(&whole));
    let cuts: Vec<usize> = (1..length).collect();
    thread::scope(|scope| {
        for some in cuts.chunks(length.div_ceil(8)) {
            let (scene, make, whole) = (&scene, &make, &whole);
            scope.spawn(move || {
                for &cut in some {
                    let bytes = make(&fresh());
                    let (one, other) = bytes.split_at(cut);
                    let found = answered(scene, &[one, other], Duration::from_millis(4));
                    assert_eq!(shown(&found), shown(whole), "{} | {}", shown(one), shown(other));
                }
            });
        }
    });
    let bytes = make(&fresh());
    let single: Vec<_> = bytes.chunks(1).collect();
    let found = answered(&scene, &single, Duration::from_millis(1));
    assert_eq!(shown(&found), shown(&whole), "byte by byte");
    whole
}

#[test]
fn commands_may_be_cut_anywhere() {
    let whole = cut_anywhere(mixed);
    let told = String::from_utf8(whole).unwrap();
    let begin = "+PONG\r\n*5\r\n:0\r\n:6\r\n:5\r\n:-1\r\n:3600\r\n+PONG\r\n\
                 *5\r\n:0\r\n:6\r\n:3\r\n:-1\r\n:10800\r\n$9\r\na\r\n$3\r\n\0b\r\n$5\r\naA \"b\r\n\
                 $0\r\n\r\n-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' \r\n%7\r\n";
    assert!(told.starts_with(begin), "{told:?}");
    assert!(told.ends_with("_\r\n+OK\r\n"), "{told:?}");
}

#[test]
fn mistakes_may_be_cut_anywhere() {
    let mistakes: [&[u8]; 5] = [
        b"*1x\r\n",
        b"*2\r\n$4\r\nECHO\r\n:1\r\n",
        b"*2\r\n$4\r\nECHO\r\n$99999999999999999999\r\n",
        b"*1\r\n$4\r\nPINGPING\r\n",
        b"ECHO 'a\r\n",
    ];
    for mistake in mistakes {
        // Some is left over at the end, so that it need not wait for more to see what is wrong.
        let whole = cut_anywhere(|_| [&words("PING"), mistake, b"\r\n\r\n"].concat());
        let told = String::from_utf8(whole).unwrap();
        assert!(told.starts_with("+PONG\r\n-ERR Protocol error: "), "{told:?}");
        assert_eq!(told.lines().count(), 2, "{told:?}");
    }
}

/// A network may also put together what was sent apart.
#[test]
fn a_long_string_may_come_in_many_pieces() {
    let scene = Scene::start(&[]);
    let text = "0123456789abcdef".repeat(3800);
    let bytes = [framed(&["ECHO", &text]), words("QUIT")].concat();
    let expected = format!("${}\r\n{text}\r\n+OK\r\n", text.len()).into_bytes();
    for size in [100, 1460, 16_384, 16_385] {
        let pieces: Vec<_> = bytes.chunks(size).collect();
        let found = answered(&scene, &pieces, Duration::from_micros(100));
        assert!(found == expected, "in pieces of {size}: {}", shown(&found));
    }
}
