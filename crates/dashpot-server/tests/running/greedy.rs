//! Those who ask without end. They may have what is left, and no more.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{check, get};
use crate::service::Service;

/// Who asks without end and never listens must not be answered without end: the answers have to be
/// kept somewhere. From some point on, no more is read from that one.
#[test]
fn answers_that_nobody_reads_are_not_kept_without_end() {
    let service = Service::start::<&str>(&[]);
    for _ in 0..100 {
        service.client().get("/openapi.json");
    }
    let before = service.memory();
    let mut client = service.client();
    client.stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let some = get("/openapi.json").repeat(1000);
    let (mut longest, mut most, mut asked) = (Duration::ZERO, 0, 0);
    // In portions, so that it has no more to do than it can in a moment.
    for _ in 0..20 {
        if client.stream.write_all(some.as_bytes()).is_err() {
            break;
        }
        asked += 1000;
        let begun = Instant::now();
        assert_eq!(service.client().get("/healthz").status, 200);
        longest = longest.max(begun.elapsed());
        most = most.max(service.memory());
        thread::sleep(Duration::from_millis(100));
    }
    // It may not have come to all of them yet.
    for _ in 0..30 {
        thread::sleep(Duration::from_millis(100));
        most = most.max(service.memory());
    }
    println!("{asked} asked; {before} bytes became {most}; others waited {longest:?} at most");
    assert!(longest < Duration::from_secs(3), "others waited {longest:?}");
    assert!(most < before + 16 * 1024 * 1024, "{asked} asked: {before} bytes became {most}");
}

/// Asks without a pause over so many connections, and reads every answer. How long others wait at
/// most, how much memory it has at most beyond what it had, and how many bytes were answered.
fn flood(connections: usize, request: &str) -> (Duration, u64, usize) {
    let service = Service::start::<&str>(&[]);
    for _ in 0..100 {
        service.client().get("/openapi.json");
    }
    let before = service.memory();
    let (over, read) = (AtomicBool::new(false), AtomicUsize::new(0));
    let some = request.repeat(200);
    let (mut longest, mut most) = (Duration::ZERO, before);
    thread::scope(|scope| {
        let mut ends = Vec::new();
        for _ in 0..connections {
            let client = service.client();
            ends.push(client.stream.try_clone().unwrap());
            let (mut writer, mut reader) = (client.stream.try_clone().unwrap(), client.stream);
            let (over, read, some) = (&over, &read, &some);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) && writer.write_all(some.as_bytes()).is_ok() {}
            });
            scope.spawn(move || {
                let mut answers = vec![0; 1 << 20];
                while let Ok(count @ 1..) = reader.read(&mut answers) {
                    read.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
        let begun = Instant::now();
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while begun.elapsed() < Duration::from_secs(2) {
                let asked = Instant::now();
                assert_eq!(service.client().get("/healthz").status, 200);
                longest = longest.max(asked.elapsed());
                most = most.max(service.memory());
                thread::sleep(Duration::from_millis(20));
            }
        }));
        over.store(true, Ordering::Relaxed);
        // Whoever is in the middle of it, too.
        ends.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
        asked.expect("others to be answered at all");
    });
    (longest, most - before, read.into_inner())
}

/// All of these are read, so nothing is to be kept for long.
#[test]
fn who_asks_without_a_pause_leaves_time_for_others() {
    let cases = [
        (1, "large answers", get("/openapi.json")),
        (4, "large answers", get("/openapi.json")),
        (4, "small answers", check(r#"{"key":"alice","limit":"1M/s"}"#)),
    ];
    let wrong: Vec<_> = cases
        .into_iter()
        .filter_map(|(connections, what, request)| {
            let (longest, more, read) = flood(connections, &request);
            let told = format!(
                "{connections} for {what}: others waited {longest:?}; {more} more bytes; {read} read"
            );
            println!("{told}");
            let most = 8 * 1024 * 1024 + 4 * 1024 * 1024 * connections as u64;
            let right = read > 100_000 && longest < Duration::from_secs(3) && more < most;
            (!right).then_some(told)
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
