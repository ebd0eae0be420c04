//! Callers who ask for another protocol to get bytes past the gateway.

use std::io::Write;

use crate::backend::{Backend, Seen};
use crate::caller::get;
use crate::cases::{all, case};
use crate::echo;
use crate::frames::{Connection, Ended, request};
use crate::gateway::Gateway;

const ASKS: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

/// The backend goes on with HTTP, so all that follows is HTTP to the gateway, too.
#[test]
fn what_was_not_granted_changes_nothing() {
    let head = "GET /a HTTP/1.1\r\nHost: a.example\r\n";
    let chunks = "Transfer-Encoding: chunked\r\n";
    let hidden = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = hidden.len();
    let whole = format!("GET /a {}", hidden.escape_default());
    all(vec![
        case("plain", format!("{head}{ASKS}\r\n")).passed(&["GET /a"]),
        case("another", format!("{head}{}\r\n", ASKS.replace("websocket", "h2c")))
            .passed(&["GET /a"]),
        case("not of the connection", format!("{head}Upgrade: websocket\r\n\r\n"))
            .passed(&["GET /a"]),
        case("to nothing", format!("{head}Connection: upgrade\r\n\r\n")).passed(&["GET /a"]),
        case("with a body", format!("{head}{ASKS}Content-Length: {length}\r\n\r\n{hidden}"))
            .refused()
            .passed(&[&whole]),
        case(
            "with chunks",
            format!("{head}{ASKS}{chunks}\r\n5\r\nhello\r\n0\r\n\r\n").replace("GET", "POST"),
        )
        .refused()
        .passed(&["POST /a hello"]),
        case(
            "with broken chunks",
            format!("{head}{ASKS}{chunks}\r\n{hidden}").replace("GET /a", "POST /a"),
        )
        .refused()
        .broken(),
        case("two of them", format!("{head}{ASKS}{ASKS}\r\n")).refused().passed(&["GET /a"]),
        case("folded", format!("{head}Connection: Upgrade\r\nUpgrade:\r\n websocket\r\n\r\n"))
            .refused(),
        case("in HTTP/1.0", format!("GET /a HTTP/1.0\r\nHost: a\r\n{ASKS}\r\n"))
            .refused()
            .passed_and_closed(&["GET /a"]),
    ]);
}

/// Says yes to whatever `/yes` asks for, and records what comes then.
fn eager() -> Backend {
    Backend::start(|link| {
        while let Some(request) = link.request() {
            if request.word(1) != "/yes" {
                if !echo::answer(link, &request) {
                    return;
                }
                continue;
            }
            link.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
            // Whatever it is, it is not HTTP.
            while link.more() {}
            link.buffer.clear();
            return;
        }
    })
}

/// Whoever cannot have it does not get it, though the backend says so; and what was said is nobody else's.
#[test]
fn what_was_granted_to_those_who_cannot_have_it_is_the_backends_fault() {
    let backend = eager();
    let mut gateway = Gateway::start(backend.address, &["--threads", "1"]);
    let mut old = gateway.caller();
    old.send(format!("GET /yes HTTP/1.0\r\nHost: a\r\n{ASKS}\r\n"));
    let told = old.answer().map(|answer| answer.status());
    assert!(matches!(told, Ok(400 | 502)), "{told:?}");
    let mut connection = Connection::to(&gateway);
    connection.send(&request(1, &crate::frames::get("/yes"), b""));
    let end = connection.end(1);
    assert!(matches!(end, Ended::Answered(502, _)), "{end:?}");
    let mut plain = gateway.caller();
    assert_eq!(plain.get("/yes").map(|answer| answer.status()), Ok(502));
    for _ in 0..3 {
        gateway.serves("/next");
    }
    gateway.is_well();
}

/// The connection is theirs alone from then on: it never serves anybody else.
#[test]
fn what_goes_through_a_tunnel_reaches_nobody_else() {
    let backend = eager();
    let mut gateway = Gateway::start(backend.address, &["--threads", "1"]);
    for _ in 0..5 {
        let mut caller = gateway.caller();
        // The next bytes come with the question, before anybody has said yes.
        let bytes = format!("GET /yes HTTP/1.1\r\nHost: a\r\n{ASKS}\r\n{}", get("/tunnelled"));
        caller.stream.write_all(bytes.as_bytes()).unwrap();
        assert_eq!(caller.answer().unwrap().status(), 101);
        caller.send(get("/tunnelled"));
        gateway.serves("/next");
        drop(caller);
        gateway.serves("/next");
    }
    let seen = backend.take();
    let tunnelled = Seen::Whole("GET /tunnelled".to_owned());
    assert!(!seen.contains(&tunnelled), "{seen:?}");
    gateway.is_well();
}
