//! What is admitted beyond `50/s` with a burst of 50, by everybody, asked where limiters are weak: after a pause, at the end of a
//! window and at the beginning of the next, and without a break.
//!
//! Whatever the traffic, at most 50 + 50·t may pass in any t seconds. The time of an interval is taken from before its first
//! question to after its last answer, so nothing is called too much that may not have been.

mod ask;

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use dashpot_testkit::process::{TemporaryDirectory, free_port};

use crate::Scale;
use crate::app;
use crate::proxy::{Limit, SUBJECTS as GATEWAYS, backend};
use crate::results::{self, Wanted};
use crate::servers::{Running, at, dashpot, throttlecrab};
use crate::table::{Table, count, number};
use ask::Ask;

const RATE: f64 = 50.0;
const BURST: f64 = 50.0;

/// When somebody was admitted: asked, and answered.
type Admission = (Instant, Instant);

/// What has to live while it is asked.
struct Scene {
    ask: Box<dyn Ask>,
    _running: Vec<Running>,
}

struct Subject {
    name: &'static str,
    how: &'static str,
    scene: fn(&Path) -> Option<Scene>,
}

const SUBJECTS: [Subject; 14] = [
    Subject { name: "dashpot serve", how: "token bucket", scene: |_| serve("token-bucket") },
    Subject { name: "dashpot serve", how: "sliding window", scene: |_| serve("sliding-window") },
    Subject {
        name: "dashpot's layer",
        how: "token bucket",
        scene: |_| application("dashpot's layer"),
    },
    Subject {
        name: "dashpot proxy",
        how: "token bucket",
        scene: |directory| gateway(directory, "dashpot"),
    },
    Subject {
        name: "nginx",
        how: "limit_req, nodelay",
        scene: |directory| gateway(directory, "nginx"),
    },
    Subject {
        name: "HAProxy",
        how: "http_req_rate",
        scene: |directory| gateway(directory, "HAProxy"),
    },
    Subject {
        name: "Envoy",
        how: "local, fills each second",
        scene: |directory| gateway(directory, "Envoy"),
    },
    Subject { name: "tower-governor", how: "GCRA", scene: |_| application("tower-governor") },
    Subject {
        name: "express-rate-limit",
        how: "fixed window",
        scene: |_| application("express-rate-limit"),
    },
    Subject {
        name: "throttlecrab",
        how: "GCRA",
        scene: |_| {
            let port = free_port();
            let running = throttlecrab(port, "http")?;
            let body =
                r#"{"key":"k","max_burst":50,"count_per_period":50,"period":1,"quantity":1}"#;
            Some(Scene {
                ask: ask::http(port, &ask::post("/throttle", body), "\"allowed\":true"),
                _running: vec![running],
            })
        },
    },
    Subject {
        name: "governor",
        how: "GCRA",
        scene: |_| Some(Scene { ask: ask::governor(50), _running: Vec::new() }),
    },
    Subject {
        name: "limitador",
        how: "fixed window",
        scene: |_| Some(Scene { ask: ask::limitador(50, 1), _running: Vec::new() }),
    },
    Subject {
        name: "Redis + Lua",
        how: "GCRA",
        scene: |_| Some(Scene { ask: ask::redis_gcra(), _running: Vec::new() }),
    },
    Subject {
        name: "Redis + Lua",
        how: "INCR and EXPIRE",
        scene: |_| Some(Scene { ask: ask::redis_incr(), _running: Vec::new() }),
    },
];

impl Subject {
    /// What it answered in a second, in the sections before this one; those who were asked in one way only have none for the other.
    fn rate(&self) -> f64 {
        let is_other = matches!(self.how, "sliding window" | "INCR and EXPIRE");
        if is_other { f64::NAN } else { results::rate_of(self.name) }
    }
}

fn serve(algorithm: &str) -> Option<Scene> {
    let port = free_port();
    let running =
        dashpot(port, &["--listen", &at(port), "--grpc-listen", "off", "--resp-listen", "off"])?;
    let body = format!(r#"{{"key":"k","limit":"50/s","algorithm":"{algorithm}"}}"#);
    Some(Scene {
        ask: ask::http(port, &ask::post("/v1/check", &body), r#"{"outcome":"allow""#),
        _running: vec![running],
    })
}

fn application(subject: &str) -> Option<Scene> {
    let port = free_port();
    let running = app::run(subject, port, "fifty")?;
    Some(Scene {
        ask: ask::http(port, &ask::get(app::PATH), "HTTP/1.1 200"),
        _running: vec![running],
    })
}

fn gateway(directory: &Path, name: &str) -> Option<Scene> {
    let (behind, port) = (free_port(), free_port());
    let backend = backend(directory, behind);
    let gateway = GATEWAYS.iter().find(|gateway| gateway.name == name)?;
    let running = (gateway.run)(directory, port, behind, Limit::Fifty)?;
    Some(Scene {
        ask: ask::http(port, &ask::get("/"), "HTTP/1.1 200"),
        _running: vec![running, backend],
    })
}

pub(crate) fn report(scale: Scale) {
    let rounds = if scale == Scale::Full { 3 } else { 1 };
    let head = ["who", "how", "answers/s", "admitted", "most in a second ÷ 50", "beyond 50 + 50·t"];
    let mut table = Table::new(head);
    let mut bars = Vec::new();
    for subject in &SUBJECTS {
        eprintln!("burst: {}, {}", subject.name, subject.how);
        let directory = TemporaryDirectory::new();
        let Some(mut scene) = (subject.scene)(directory.path()) else { continue };
        let admissions = play(scene.ask.as_mut(), rounds);
        // HAProxy admits as few as 50 + 50, who never asked too often; fewer is a question that was not understood.
        assert!(admissions.len() as f64 >= BURST, "{} admits nobody", subject.name);
        let (excess, second) = (excess(&admissions), most_in_a_second(&admissions));
        let cells = [count(admissions.len() as f64), number(second / RATE), count(excess)];
        let lead = [subject.name.to_owned(), subject.how.to_owned(), count(subject.rate())];
        table.row(lead.into_iter().chain(cells));
        let name = format!("{}, {}", subject.name, subject.how);
        results::samples(
            format!("burst, {name}: admitted, beyond"),
            vec![admissions.len() as f64, excess],
        );
        bars.push((name, excess));
        if subject.name.starts_with("dashpot") {
            let work = format!("over-admission, {} by {}", subject.name, subject.how);
            results::goal("also", work, Wanted::AtMost(0.0), excess, "requests");
        }
    }
    results::chart("burst", "Admitted beyond 50 + 50·t", "requests", bars);
    table.print(
        "Over-admission, asked where limiters are weak",
        "`50/s` with a burst of 50, one caller on one connection: one request, a pause until the window is nearly over, as many \
         as can be, the next window, as many as can be; then without a break for a second and a half. `beyond 50 + 50·t` is the worst \
         of all intervals, t from before its first question to after its last answer: 0 is a bucket that holds. Fixed windows \
         promise no more than 100 in a second at their boundary, which is what is seen here. `answers/s` is what the same program answered in this run \
         when all was allowed, through the door that is asked here, Redis pipelined and limitador by gRPC; it compares only within a section. HAProxy also counts those it denies.",
    );
}

/// Asks in the ways that hurt. Whoever was admitted, and when.
fn play(ask: &mut dyn Ask, rounds: usize) -> Vec<Admission> {
    let mut admissions = Vec::new();
    for _ in 0..rounds {
        sleep(Duration::from_millis(2100));
        let start = Instant::now();
        once(ask, &mut admissions);
        sleep(Duration::from_millis(930).saturating_sub(start.elapsed()));
        for end in [990, 1100] {
            sleep(Duration::from_millis(end - 60).saturating_sub(start.elapsed()));
            while start.elapsed() < Duration::from_millis(end) {
                once(ask, &mut admissions);
            }
        }
        sleep(Duration::from_millis(2300));
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1500) {
            once(ask, &mut admissions);
        }
    }
    admissions
}

fn once(ask: &mut dyn Ask, admissions: &mut Vec<Admission>) {
    let before = Instant::now();
    if ask.is_admitted() {
        admissions.push((before, Instant::now()));
    }
}

/// The most that any interval holds beyond its due.
fn excess(admissions: &[Admission]) -> f64 {
    let mut worst = 0.0_f64;
    for (first, &(start, _)) in admissions.iter().enumerate() {
        for (last, &(_, end)) in admissions.iter().enumerate().skip(first) {
            let due = RATE.mul_add((end - start).as_secs_f64(), BURST);
            worst = worst.max((last - first + 1) as f64 - due.floor());
        }
    }
    worst
}

fn most_in_a_second(admissions: &[Admission]) -> f64 {
    let within = |&(start, _): &Admission| {
        let inside =
            |&&(from, end): &&Admission| from >= start && end - start < Duration::from_secs(1);
        admissions.iter().filter(inside).count()
    };
    admissions.iter().map(within).max().unwrap_or(0) as f64
}
