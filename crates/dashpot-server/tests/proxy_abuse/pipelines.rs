//! Many requests at once over one connection.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::backend::Seen;
use crate::caller::get;
use crate::cases::{Scene, all, case};
use crate::echo;
use crate::gateway::Gateway;
use crate::service::until;

#[test]
fn what_comes_before_a_bad_one_is_answered_and_nothing_after_it() {
    let good = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let bad = [
        "GET /b HTTP/1.1\r\n\r\n",
        "GET /b HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
        "GET /b HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
        "GET /b HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n",
    ];
    let mut cases = Vec::new();
    for bad in bad {
        let bytes = format!("{good}{good}{bad}");
        let case = case(bad, bytes).passed_until_refused(&["GET /a", "GET /a"]);
        // Another protocol may be closed without a word.
        cases.push(match bad.contains("Host") || bad.contains("GET") {
            true => case,
            false => case.passed_and_closed(&["GET /a", "GET /a"]),
        });
    }
    all(cases);
}

#[test]
fn a_thousand_are_answered_in_order() {
    let scene = Scene::start();
    let all: String = (0..1000).map(|nth| get(&format!("/{nth}"))).collect();
    let mut caller = scene.gateway.caller();
    let mut writer = caller.stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(all.as_bytes()));
        for nth in 0..1000 {
            assert_eq!(caller.answer().unwrap().text(), format!("GET /{nth}"));
        }
    });
    let asked: Vec<_> = (0..1000).map(|nth| Seen::Whole(format!("GET /{nth}"))).collect();
    assert_eq!(scene.backend.take(), asked, "once each, and in order");
}

/// Who asks without end and never listens is not answered without end: the answers have to be kept
/// somewhere.
#[test]
fn who_asks_and_never_listens_is_let_go() {
    let backend = echo::backend();
    let mut gateway = Gateway::start(backend.address, &["--client-timeout", "2s"]);
    gateway.serves("/warm");
    let open = || gateway.service.metric("dashpot_open_connections");
    let before = gateway.service.memory();
    let some = get("/bytes/100000").repeat(500);
    let mut callers: Vec<_> = (0..10).map(|_| gateway.caller()).collect();
    for caller in &mut callers {
        caller.stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        caller.send(&some);
    }
    until("them to be there", Duration::from_secs(5), || (open() >= 10.0).then_some(()));
    let (mut most, begun) = (0, Instant::now());
    // Somebody else may be there, and whoever looks at it.
    while open() >= 4.0 {
        most = most.max(gateway.service.memory());
        let honest = gateway.serves("/honest");
        assert!(honest < Duration::from_secs(3), "others waited {honest:?}");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(12), "{} are still there after {took:?}", open());
    }
    println!("let go after {:?}; {before} bytes became {most} at most", begun.elapsed());
    assert!(most < before + 16 * 1024 * 1024, "{before} bytes became {most}");
    gateway.is_well();
}
