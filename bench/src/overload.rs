//! Three times as many requests as an axum service can serve, whose handler is nothing but processor time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::error_handling::HandleErrorLayer;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{BoxError, Router};
use dashpot::MemoryStore;
use dashpot_http::RateLimitLayer;
use dashpot_rules::RuleSet;
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceBuilder;

use crate::Scale;
use crate::child::rounds;
use crate::table::{Table, number};

const SUBJECTS: [&str; 3] = ["nothing", "tower load_shed, 20 at once", "dashpot"];

/// Who waits longer has gone elsewhere.
const DEADLINE: Duration = Duration::from_secs(1);

/// What a request takes of a processor.
const WORK: Duration = Duration::from_millis(10);

const RULES: &str = r#"
    [[priority]]
    name = "critical"
    match = { path = "/critical" }
    class = "critical"

    [[priority]]
    name = "background"
    match = { path = "/background" }
    class = "background"

    [[rule]]
    name = "worker"
    capacity = { limit = 10, latency = "100ms", places = 20, wait = "250ms" }
"#;

/// Of ten requests two are critical, four are normal and four are background.
const MIX: [(&str, u64); 3] = [("/critical", 2), ("/normal", 4), ("/background", 4)];

pub(crate) fn report(scale: Scale) {
    let (count, seconds) = match scale {
        Scale::Quick => (1, "10"),
        Scale::Usual => (1, "15"),
        Scale::Full => (3, "20"),
    };
    let all = rounds(count, "overload", &SUBJECTS, &[seconds.to_owned()]);
    let mut table = Table::new([
        "in front of it",
        "capacity, /s",
        "goodput ÷ capacity",
        "p50, ms",
        "p99, ms",
        "critical",
        "normal",
        "background",
        "503 p99, ms",
    ]);
    for (subject, figures) in SUBJECTS.iter().zip(&all) {
        let percent = |figure: usize| format!("{:.1} %", figures.get(figure) * 100.0);
        table.row([
            (*subject).to_owned(),
            number(figures.get(0)),
            format!("{:.2}", figures.get(1)),
            number(figures.get(2)),
            number(figures.get(3)),
            percent(4),
            percent(5),
            percent(6),
            number(figures.get(7)),
        ]);
    }
    table.print(
        "Three times too much",
        "An axum service whose handler takes 10 ms of a processor (`spawn_blocking`), asked three times as often as it can answer, by somebody \
         who does not wait for answers before asking again: a fifth critical, two fifths normal and two fifths background. Capacity is what it \
         answers when four ask one after another, measured in the same process right before. Good is a 200 within a second; times are those of \
         good answers. The first five seconds are not counted. Load generator and service share the machine. Wanted: goodput at least 0.9 of capacity, \
         99 % of what is critical served.",
    );
}

/// `SUBJECT SECONDS`: capacity, goodput by capacity, median and p99 of what was served in milliseconds, how much of each class was, p99 of
/// refusals.
pub(crate) fn child(args: &[&str]) -> Vec<f64> {
    let &[subject, seconds] = args else { panic!("wrong arguments: {args:?}") };
    let seconds: u64 = seconds.parse().expect("a number of seconds");
    let turns = calibrate();
    let handler = move || async move {
        let done = tokio::task::spawn_blocking(move || burn(turns)).await;
        if done.is_ok() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }
    };
    let app = Router::new().fallback(get(handler));
    let app = match subject {
        "nothing" => app,
        "dashpot" => {
            let rules = RuleSet::parse(RULES).expect("right rules");
            app.layer(RateLimitLayer::from_rules(rules, MemoryStore::new()))
        }
        _ => {
            let refuse = |_: BoxError| async { StatusCode::SERVICE_UNAVAILABLE };
            let shed = ServiceBuilder::new().layer(HandleErrorLayer::new(refuse));
            app.layer(shed.load_shed().layer(tower::limit::GlobalConcurrencyLimitLayer::new(20)))
        }
    };
    let server = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let server = server.expect("a runtime");
    let listener = server.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("an address");
    server.spawn(async move { axum::serve(listener, app).await });
    let asking = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let figures = asking.expect("a runtime").block_on(async move {
        let capacity = capacity(address).await;
        [vec![capacity], overload(address, capacity * 3.0, seconds, capacity).await].concat()
    });
    // Work that nobody waits for any more may be left.
    server.shutdown_background();
    figures
}

/// How many answers there are in a second if four ask one after another.
async fn capacity(address: SocketAddr) -> f64 {
    let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (stop, answers) = (stop.clone(), answers.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let status = ask(address, "/critical").await;
                    answers.fetch_add(u64::from(status == Some(200)), Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (start, before) = (Instant::now(), answers.load(Ordering::Relaxed));
    tokio::time::sleep(Duration::from_secs(4)).await;
    let answered = answers.load(Ordering::Relaxed) - before;
    let rate = answered as f64 / start.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("a caller ends");
    }
    rate
}

/// Asks so often, whatever is answered.
async fn overload(address: SocketAddr, rate: f64, seconds: u64, capacity: f64) -> Vec<f64> {
    let warm_up = Duration::from_secs(5);
    let ends = warm_up + Duration::from_secs(seconds);
    let start = Instant::now();
    let gap = Duration::from_secs_f64(1.0 / rate);
    let mut asked = Vec::new();
    let mut due = Duration::ZERO;
    for number in 0_u64.. {
        due += gap;
        if due > ends {
            break;
        }
        tokio::time::sleep_until((start + due).into()).await;
        // Spread, so that no class comes in a row.
        let turn = number * 7 % 10;
        let class = if turn < MIX[0].1 {
            0
        } else if turn < MIX[0].1 + MIX[1].1 {
            1
        } else {
            2
        };
        let is_counted = due > warm_up;
        asked.push(tokio::spawn(async move {
            let begun = Instant::now();
            let answer = tokio::time::timeout(DEADLINE, ask(address, MIX[class].0)).await;
            (is_counted, class, answer.ok().flatten(), begun.elapsed())
        }));
    }
    let new = || Histogram::<u64>::new(3).expect("a histogram");
    let (mut good, mut refused) = (new(), new());
    let (mut served, mut wanted) = ([0_u64; 3], [0_u64; 3]);
    for answer in asked {
        let (is_counted, class, status, took) = answer.await.expect("a caller ends");
        if !is_counted {
            continue;
        }
        wanted[class] += 1;
        let micros = u64::try_from(took.as_micros()).expect("a short time");
        match status {
            Some(200) if took <= DEADLINE => {
                served[class] += 1;
                good.record(micros).expect("a short time");
            }
            Some(503) => refused.record(micros).expect("a short time"),
            _ => {}
        }
    }
    let millis = |of: &Histogram<u64>, part: f64| {
        if of.is_empty() { f64::NAN } else { of.value_at_quantile(part) as f64 / 1000.0 }
    };
    let goodput = served.iter().sum::<u64>() as f64 / seconds as f64;
    let parts = served.iter().zip(&wanted).map(|(served, all)| *served as f64 / *all as f64);
    let mut figures = vec![goodput / capacity, millis(&good, 0.5), millis(&good, 0.99)];
    figures.extend(parts);
    figures.push(millis(&refused, 0.99));
    figures
}

/// The status, if there is one.
async fn ask(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}

/// How many turns take as long as the work should.
fn calibrate() -> u64 {
    let (mut turns, start) = (0, Instant::now());
    while start.elapsed() < WORK * 20 {
        burn(10_000);
        turns += 10_000;
    }
    turns / 20
}

fn burn(turns: u64) {
    let mut state = 1_u64;
    for turn in 0..turns {
        state =
            std::hint::black_box(state.rotate_left(5) ^ turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    std::hint::black_box(state);
}
