//! Checks over gRPC: dashpot as Envoy asks it, beside limitador and throttlecrab.
//!
//! All are asked by `h2load`, one thread, 8 connections and 16 calls at a time on each, on the same
//! machine: what it takes is taken from all alike. It has one body for all calls, so one key.

mod ask;
mod limitador;
mod message;

use std::path::Path;
use std::process::Stdio;
use std::{env, fs};

use dashpot_testkit::process::{TemporaryDirectory, free_port, start};
use prost::Message;

use self::message::{
    Descriptor, Entry, OK, OVER_LIMIT, RateLimitRequest, RateLimitResponse, ThrottleRequest,
    ThrottleResponse,
};
use crate::Scale;
use crate::results::{self, Wanted};
use crate::servers::{Running, at, dashpot, medians, throttlecrab, wait_for};
use crate::table::{Table, count, number, ratio};

pub(crate) use self::limitador::serve as serve_limitador;

/// The first argument of the process that serves limitador.
pub(crate) const LIMITADOR: &str = "--limitador";

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const DOMAIN: &str = "bench";
const KEY: &str = "user";
const VALUE: &str = "user-00001234";

/// What a key may do, and so what is answered.
struct Limit {
    answers: &'static str,
    is_allowed: bool,
    requests: u32,
    seconds: u32,
    unit: &'static str,
}

const LIMITS: [Limit; 2] = [
    Limit { answers: "allowed", is_allowed: true, requests: 1_000_000, seconds: 1, unit: "second" },
    // A day, so that hardly ever one ends meanwhile.
    Limit { answers: "denied", is_allowed: false, requests: 1, seconds: 86_400, unit: "day" },
];

/// How a service is asked.
struct Protocol {
    path: &'static str,
    question: fn(&Limit) -> Vec<u8>,
    /// What an answer says, if it says anything.
    is_allowed: fn(&[u8]) -> Option<bool>,
}

const ENVOY: Protocol = Protocol {
    path: SHOULD_RATE_LIMIT,
    question: |_| {
        let entry = Entry { key: KEY.to_owned(), value: VALUE.to_owned() };
        let descriptors = vec![Descriptor { entries: vec![entry] }];
        let domain = DOMAIN.to_owned();
        ask::frame(&RateLimitRequest { domain, descriptors, hits_addend: 0 })
    },
    is_allowed: |answer| match RateLimitResponse::decode(answer).ok()?.overall_code {
        OK => Some(true),
        OVER_LIMIT => Some(false),
        _ => None,
    },
};

const THROTTLE: Protocol = Protocol {
    path: "/throttlecrab.RateLimiter/Throttle",
    question: |limit| {
        let requests = i32::try_from(limit.requests).expect("a number it knows");
        let period = i32::try_from(limit.seconds).expect("a number it knows");
        ask::frame(&ThrottleRequest {
            key: VALUE.to_owned(),
            // A burst of 1 is not enforced.
            max_burst: requests.max(2),
            count_per_period: requests,
            period,
            quantity: 1,
        })
    },
    is_allowed: |answer| Some(ThrottleResponse::decode(answer).ok()?.allowed),
};

/// A service.
struct Subject {
    name: &'static str,
    /// On this port, with this limit, and a directory for what it reads.
    run: fn(u16, &Limit, &Path) -> Option<Running>,
    protocol: Protocol,
}

const SUBJECTS: [Subject; 5] = [
    Subject {
        name: "dashpot",
        run: |port, limit, directory| envoy(port, limit, directory, &[]),
        protocol: ENVOY,
    },
    Subject {
        name: "dashpot --threads 2",
        run: |port, limit, directory| envoy(port, limit, directory, &["--threads", "2"]),
        protocol: ENVOY,
    },
    Subject {
        name: "throttlecrab",
        run: |port, _, _| throttlecrab(port, "grpc"),
        protocol: THROTTLE,
    },
    Subject {
        // Its own program is actix's, whose runtime has one thread.
        name: "limitador",
        run: |port, limit, _| run_limitador(port, limit, "one"),
        protocol: ENVOY,
    },
    Subject {
        name: "limitador, many threads",
        run: |port, limit, _| run_limitador(port, limit, "many"),
        protocol: ENVOY,
    },
];

/// `dashpot serve` with a file as envoyproxy/ratelimit reads it.
fn envoy(port: u16, limit: &Limit, directory: &Path, more: &[&str]) -> Option<Running> {
    let Limit { requests, unit, .. } = limit;
    let yaml = format!(
        "domain: {DOMAIN}
descriptors:
  - key: {KEY}
    rate_limit:
      unit: {unit}
      requests_per_unit: {requests}
"
    );
    fs::write(directory.join("bench.yaml"), yaml).expect("a file");
    let (http, grpc) = (at(0), at(port));
    let mut arguments = vec!["--listen", &http, "--grpc-listen", &grpc, "--resp-listen", "off"];
    arguments.extend(["--envoy-config", directory.to_str()?]);
    arguments.extend(more);
    dashpot(port, &arguments)
}

/// This program, as a server.
fn run_limitador(port: u16, limit: &Limit, threads: &str) -> Option<Running> {
    let own = env::current_exe().ok()?;
    let numbers = [u32::from(port), limit.requests, limit.seconds].map(|one| one.to_string());
    let child = start(own.to_str()?, |command| {
        command.arg(LIMITADOR).args(numbers).arg(threads).stdout(Stdio::null());
    });
    wait_for(port);
    Some(Running(child))
}

pub(crate) fn report(scale: Scale) {
    let (rounds, seconds) = match scale {
        Scale::Quick => (1, 2),
        Scale::Usual => (3, 2),
        Scale::Full => (5, 10),
    };
    let mut table = Table::new([
        "answers",
        "who",
        "requests/s",
        "÷ throttlecrab",
        "÷ limitador",
        "p50 ms",
        "p99 ms",
    ]);
    for limit in &LIMITS {
        let medians = medians(
            &format!("grpc {}", limit.answers),
            rounds,
            &SUBJECTS,
            |one| one.name.to_owned(),
            |subject| {
                let measured = measure(subject, limit, seconds);
                measured
                    .inspect_err(|why| eprintln!("{}, {}: {why}", subject.name, limit.answers))
                    .ok()
            },
        );
        let rate = |name: &str| {
            let place = SUBJECTS.iter().position(|subject| subject.name == name);
            place.map_or(f64::NAN, |place| medians[place][0])
        };
        let (own, as_many_threads) = (rate("dashpot"), rate("dashpot --threads 2"));
        let limitador = rate("limitador").max(rate("limitador, many threads"));
        let (work, faster) = (format!("a gRPC check, {}", limit.answers), Wanted::AtLeast(1.5));
        results::goal("P7", work.clone(), faster, own / rate("throttlecrab"), "× throttlecrab");
        results::goal("P7", work.clone(), faster, own / limitador, "× limitador");
        let work = work + ", as many threads";
        results::goal("P7", work, faster, as_many_threads / rate("throttlecrab"), "× throttlecrab");
        if limit.is_allowed {
            results::rate("limitador", limitador);
            let named = SUBJECTS.iter().map(|one| one.name.to_owned());
            let bars = named.zip(medians.iter().map(|figures| figures[0]));
            results::chart("grpc", "A check over gRPC", "requests a second", bars);
        }
        for (subject, [own, half, most]) in SUBJECTS.iter().zip(&medians) {
            table.row([
                limit.answers.to_owned(),
                subject.name.to_owned(),
                count(*own),
                ratio(*own, rate("throttlecrab")),
                ratio(*own, rate("limitador")),
                number(*half),
                number(*most),
            ]);
        }
    }
    table.print(
        "Checks over gRPC",
        "`h2load`, one thread, 8 connections and 16 calls at a time on each, on the same machine; all about one key, \
         because it has but one body. Times are of a shorter run that is logged. dashpot and limitador are asked \
         as Envoy asks (`ShouldRateLimit`), throttlecrab by its own method. The first dashpot is as it starts, with \
         one thread less than there are processors, the second on two processors as many as throttlecrab; it answers with every descriptor's state and the headers to add, \
         limitador with the outcome alone. limitador is its library in memory behind tonic, not its own program, which is not \
         published as a crate: without that one's metrics and traces, on one thread, as that program has it, and on as many as \
         tokio takes.",
    );
}

/// Asks for some seconds: requests a second, and how long half and 99 of 100 take, in milliseconds.
fn measure(subject: &Subject, limit: &Limit, seconds: u32) -> Result<[f64; 3], String> {
    let (port, directory) = (free_port(), TemporaryDirectory::new());
    let _running = (subject.run)(port, limit, directory.path()).ok_or("it does not run")?;
    let Protocol { path, question, is_allowed } = subject.protocol;
    let question = question(limit);
    // What is read at the start is apart from what is asked.
    let files = TemporaryDirectory::new();
    let (body, log) = (files.path().join("body"), files.path().join("log"));
    fs::write(&body, &question).expect("a file");

    let once = || ask::once(port, path, &question).map_err(|error| error.to_string());
    let verify = || {
        let answer = once()?;
        let is_right = is_allowed(&answer) == Some(limit.is_allowed);
        is_right.then_some(answer).ok_or_else(|| "another outcome was wanted".to_owned())
    };
    if !limit.is_allowed {
        // What the burst lets pass.
        once()?;
        once()?;
    }
    verify()?;
    // The first second is not counted.
    ask::load(port, path, &body, 1, None)?;
    let load = ask::load(port, path, &body, seconds, None)?;
    ask::load(port, path, &body, seconds.div_ceil(4), Some(&log))?;
    if !load.is_of(&verify()?) {
        return Err("there were errors among the answers".to_owned());
    }
    let [half, most] = ask::latencies(&log);
    Ok([load.rate, half, most])
}
