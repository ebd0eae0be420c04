//! A crowd that comes and goes, on all threads at once: nobody is forgotten, and nobody is let through too early.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dashpot_testkit::on_all_threads;

use crate::backend::Backend;
use crate::caller::request;
use crate::proxy::Proxy;

const LINES: [&str; 3] = ["a", "b", "c"];

/// Not the same each time, and not random either.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn nobody_is_forgotten_in_a_line() {
    let backend = Backend::start();
    let rules = "[[rule]]\nname = 'q'\nby = ['header:x-line']\nlimits = ['50/s']\n\
                 algorithm = 'leaky-bucket'\nqueue = 40\n";
    let proxy = Proxy::with(&backend, rules, &["--threads", "3"]);
    let sent = Instant::now();
    let counts = on_all_threads(8, |thread| {
        let (mut dice, mut waiting, mut served) = (Dice(thread), Vec::new(), 0);
        while sent.elapsed() < Duration::from_secs(3) {
            let line = LINES[dice.roll(3) as usize];
            let method = if dice.roll(2) == 0 { "GET" } else { "POST" };
            let body = if method == "POST" { "body" } else { "" };
            let mut caller = proxy.caller_from(thread as u8 + 1);
            caller.send(request(method, &format!("/{line}"), &[&format!("x-line: {line}")], body));
            waiting.push((method, caller));
            std::thread::sleep(Duration::from_millis(dice.roll(20)));
            if dice.roll(3) == 0 {
                let leaver = dice.roll(waiting.len() as u64) as usize;
                drop(waiting.swap_remove(leaver));
            }
            if waiting.len() > 12 {
                let (method, mut caller) = waiting.remove(0);
                served += usize::from(caller.try_answer(method).unwrap().status == 200);
            }
        }
        for (method, mut caller) in waiting {
            let status = caller.try_answer(method).unwrap().status;
            assert!([200, 429].contains(&status), "{status}");
            served += usize::from(status == 200);
        }
        served
    });
    proxy.await_queued(0);
    let mut lines: BTreeMap<String, Vec<Instant>> = BTreeMap::new();
    for seen in backend.seen() {
        lines.entry(seen.path().to_owned()).or_default().push(seen.at);
    }
    assert_eq!(lines.len(), LINES.len());
    for (line, times) in &lines {
        for (nth, at) in (0_u32..).zip(times) {
            let earliest = sent + Duration::from_millis(20) * nth;
            assert!(*at + Duration::from_millis(2) >= earliest, "{line}: the {nth}th is too early");
        }
    }
    let served: usize = counts.iter().sum();
    assert!(served > 100, "{served}");
    assert!(backend.count() >= served);
    // When all have gone, the next need not wait.
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    for line in LINES {
        assert_eq!(proxy.statuses("/next", &[&format!("x-line: {line}")], 1), [200]);
    }
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}
