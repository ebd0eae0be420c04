//! Rules that change and backends that are restarted while requests go through. Not one of them fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::backend::{Backend, Link};
use crate::caller::{Caller, post};
use crate::echo;
use crate::gateway::Gateway;
use crate::service::until;
use crate::wire::Message;

/// Four callers ask without a pause over connections that are kept, while `meanwhile` goes on. How many
/// answers there were; all of them are right.
fn under_load(
    gateway: &Gateway,
    ask: impl Fn(&mut Caller, usize) -> (Message, String) + Sync,
    meanwhile: impl FnOnce(),
) -> usize {
    let (over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (over, asked, ask) = (&over, &asked, &ask);
            scope.spawn(move || {
                let mut caller = gateway.caller();
                for nth in 0.. {
                    if over.load(SeqCst) {
                        return;
                    }
                    let (answer, wanted) = ask(&mut caller, 1_000_000 * thread + nth);
                    assert_eq!((answer.status(), answer.text()), (200, wanted), "{answer:?}");
                    asked.fetch_add(1, SeqCst);
                }
            });
        }
        let done = catch_unwind(AssertUnwindSafe(meanwhile));
        over.store(true, SeqCst);
        done.expect("what went on meanwhile");
    });
    asked.into_inner()
}

fn get(caller: &mut Caller, nth: usize) -> (Message, String) {
    let path = format!("/{nth}");
    (caller.get(&path).unwrap(), format!("GET {path}"))
}

#[test]
fn rules_that_change_fail_nobody() {
    let rules = |count: usize| {
        format!(
            "[[rule]]\nname = 'all'\nby = ['ip']\nlimits = ['{count}M/s']\n\
             [[rule]]\nname = 'path-{count}'\nmatch = {{ path = '/*' }}\nlimits = ['100 concurrent']\n"
        )
    };
    let backend = echo::backend();
    let mut gateway = Gateway::with_rules(backend.address, &rules(1), &[]);
    let generation = || gateway.service.metric("dashpot_rules_generation");
    let first = generation();
    let asked = under_load(&gateway, get, || {
        for count in 2..38 {
            match count % 3 {
                0 => gateway.home.write("rules.toml", "[[rule]]\nname = 'all'\nlimits = ['x']\n"),
                1 => gateway.home.write("rules.toml", &rules(count)),
                _ => {
                    gateway.home.replace("rules.toml", &rules(count));
                    String::new()
                }
            };
            let (read, failed) =
                (generation(), gateway.service.metric("dashpot_failed_reloads_total"));
            gateway.service.signal("HUP");
            until("it to be read", Duration::from_secs(5), || {
                match count % 3 {
                    0 => gateway.service.metric("dashpot_failed_reloads_total") > failed,
                    _ => generation() > read,
                }
                .then_some(())
            });
        }
    });
    println!("{asked} answers, generation {}", generation());
    assert!(generation() - first >= 24.0, "{first} became {}", generation());
    assert!(asked > 200, "{asked}");
    backend.is_content();
    gateway.is_well();
}

/// Closes connections without a request whenever the generation changes, as a server does that is restarted.
fn restarted(generation: &Arc<AtomicUsize>) -> Backend {
    let generation = Arc::clone(generation);
    Backend::start(move |link: &mut Link| {
        let mine = generation.load(SeqCst);
        link.stream.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let mut one = [0];
        loop {
            match link.stream.peek(&mut one) {
                Ok(0) => return,
                Ok(_) => {
                    link.stream.set_read_timeout(None).unwrap();
                    let Some(request) = link.request() else { return };
                    if !echo::answer(link, &request) {
                        return;
                    }
                    link.stream.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
                }
                Err(_) if generation.load(SeqCst) != mine => return,
                Err(_) => {}
            }
        }
    })
}

#[test]
fn a_backend_that_is_restarted_fails_no_request_that_may_be_repeated() {
    let generation = Arc::new(AtomicUsize::new(0));
    let backend = restarted(&generation);
    let mut gateway = Gateway::start(backend.address, &["--threads", "2"]);
    let repeat = |caller: &mut Caller, nth: usize| {
        // Such that connections are idle now and then.
        thread::sleep(Duration::from_millis(nth as u64 % 5));
        let method = ["GET", "PUT", "DELETE", "OPTIONS"][nth % 4];
        caller.send(format!("{method} /{nth} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
        (caller.answer().unwrap(), format!("{method} /{nth}"))
    };
    let asked = under_load(&gateway, repeat, || {
        for _ in 0..100 {
            generation.fetch_add(1, SeqCst);
            thread::sleep(Duration::from_millis(25));
        }
    });
    let made = backend.accepted();
    println!("{asked} answers over {made} connections");
    assert!(made > 50, "it was not restarted: {made} connections");
    backend.is_content();
    gateway.is_well();
}

/// Closed long before the next request: that can be seen, so nothing fails, whatever it is.
#[test]
fn connections_that_were_closed_in_between_fail_no_request() {
    let generation = Arc::new(AtomicUsize::new(0));
    let backend = restarted(&generation);
    let mut gateway = Gateway::start(backend.address, &["--threads", "1"]);
    let mut caller = gateway.caller();
    for nth in 0..30 {
        let path = format!("/{nth}");
        let mut few: Vec<_> = (0..5).map(|_| gateway.caller()).collect();
        few.iter_mut().for_each(|caller| caller.send(crate::caller::get("/sleep/20")));
        few.iter_mut().for_each(|caller| drop(caller.answer().unwrap()));
        generation.fetch_add(1, SeqCst);
        until("it to close", Duration::from_secs(5), || (backend.open() == 0).then_some(()));
        thread::sleep(Duration::from_millis(5));
        let answer = caller.ask(post(&path, "hello")).unwrap();
        assert_eq!((answer.status(), answer.text()), (200, format!("POST {path} hello")));
        let answer = caller.get(&path).unwrap();
        assert_eq!((answer.status(), answer.text()), (200, format!("GET {path}")));
        assert_eq!(backend.times(&format!("POST {path} hello")), 1);
    }
    gateway.is_well();
}

/// Whatever was kept goes after fifteen seconds without use, and nothing is left.
#[test]
fn connections_to_the_backend_that_nobody_uses_are_closed() {
    let backend = echo::backend();
    let mut gateway = Gateway::start(backend.address, &["--threads", "2"]);
    gateway.serves("/warm");
    let mut crowd: Vec<_> = (0..40).map(|_| gateway.caller()).collect();
    crowd.iter_mut().for_each(|caller| caller.send(crate::caller::get("/sleep/500")));
    crowd.iter_mut().for_each(|caller| drop(caller.answer().unwrap()));
    let (begun, kept) = (Instant::now(), backend.open());
    assert!(kept > 10, "{kept} are kept");
    drop(crowd);
    until("them to be closed", Duration::from_secs(30), || (backend.open() == 0).then_some(()));
    println!("closed after {:?}", begun.elapsed());
    assert!(begun.elapsed() > Duration::from_secs(10), "{:?}", begun.elapsed());
    gateway.has_sockets(gateway.sockets().min(12), Duration::from_secs(5));
    gateway.serves("/after");
    gateway.is_well();
}
