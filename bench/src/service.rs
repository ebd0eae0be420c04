//! The service over HTTP, beside throttlecrab's; how soon it answers, and how large it is.
//!
//! Both are asked by `wrk`, one thread and 50 connections, on the same machine: what it takes is taken
//! from both alike. scripts/bench installs it if it is not there.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use dashpot_testkit::process::{TemporaryDirectory, free_port};

use crate::Scale;
use crate::results::{self, Wanted};
use crate::servers::{
    Answers, Running, at, dashpot, figure, is_answered, medians, millis, program, throttlecrab, wrk,
};
use crate::table::{Table, count, median, number};

/// Questions that differ in their keys, so that no key is hot.
const KEYS: u32 = 10_000;

/// A service, and how it is asked.
struct Subject {
    name: &'static str,
    run: fn(u16) -> Option<Running>,
    path: &'static str,
    /// The body for a key, as `wrk`'s Lua writes it.
    allow: &'static str,
    deny: &'static str,
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        name: "dashpot",
        run: |port| {
            dashpot(port, &["--listen", &at(port), "--grpc-listen", "off", "--resp-listen", "off"])
        },
        path: "/v1/check",
        allow: r#"'{"key":"user-' .. key .. '","limit":"1000000/s burst 1000000"}'"#,
        deny: r#"'{"key":"user-' .. key .. '","limit":"1/h"}'"#,
    },
    Subject {
        name: "dashpot --threads 2",
        run: |port| {
            dashpot(
                port,
                &[
                    "--listen",
                    &at(port),
                    "--grpc-listen",
                    "off",
                    "--resp-listen",
                    "off",
                    "--threads",
                    "2",
                ],
            )
        },
        path: "/v1/check",
        allow: r#"'{"key":"user-' .. key .. '","limit":"1000000/s burst 1000000"}'"#,
        deny: r#"'{"key":"user-' .. key .. '","limit":"1/h"}'"#,
    },
    Subject {
        name: "throttlecrab",
        run: |port| throttlecrab(port, "http"),
        path: "/throttle",
        allow: r#"'{"key":"user-' .. key .. '","max_burst":1000000,"count_per_period":1000000,"period":1,"quantity":1}'"#,
        deny: r#"'{"key":"user-' .. key .. '","max_burst":2,"count_per_period":1,"period":3600,"quantity":1}'"#,
    },
];

/// Which of its bodies a service is sent.
type Body = fn(&Subject) -> &'static str;

pub(crate) fn report(scale: Scale) {
    let (rounds, seconds) = match scale {
        Scale::Quick => (1, 2),
        Scale::Usual => (3, 3),
        Scale::Full => (5, 10),
    };
    let mut table =
        Table::new(["answers", "who", "requests/s", "÷ throttlecrab", "p50 ms", "p99 ms"]);
    let bodies: [(&str, Body); 2] = [("allowed", |one| one.allow), ("denied", |one| one.deny)];
    for (outcome, body) in bodies {
        let medians = medians(
            &format!("service {outcome}"),
            rounds,
            &SUBJECTS,
            |one| one.name.to_owned(),
            |subject| measure(subject, outcome, body(subject), seconds),
        );
        let (own, peer) = (medians[0], medians[SUBJECTS.len() - 1]);
        let faster = Wanted::AtLeast(1.5);
        let work = format!("an HTTP check, {outcome}");
        results::goal("P6", work, faster, own[0] / peer[0], "× throttlecrab");
        let work = format!("p99 of an HTTP check, {outcome}");
        results::goal("P6", work, Wanted::AtMost(1.0), own[2] / peer[2], "× throttlecrab's");
        if outcome == "allowed" {
            results::rate("dashpot serve", own[0]);
            results::rate("throttlecrab", peer[0]);
            let named = SUBJECTS.iter().map(|one| one.name.to_owned());
            let bars = named.zip(medians.iter().map(|figures| figures[0]));
            results::chart("service", "A check over HTTP", "requests a second", bars);
        }
        for (subject, [rate, half, most]) in SUBJECTS.iter().zip(&medians) {
            let ratio = format!("{:.2}", rate / peer[0]);
            let cells = [outcome.to_owned(), subject.name.to_owned(), count(*rate), ratio];
            table.row(cells.into_iter().chain([number(*half), number(*most)]));
        }
    }
    table.print(
        "The service over HTTP",
        "`wrk`, one thread and 50 connections, on the same machine; 10 000 keys. The first dashpot is as it starts, with one \
         thread less than there are processors. It answers with every policy's \
         state and the rate-limit headers.",
    );
    starts(scale);
}

/// Asks for some seconds: requests a second, and how long half and 99 of 100 take, in milliseconds.
fn measure(subject: &Subject, outcome: &str, body: &str, seconds: u32) -> Option<[f64; 3]> {
    let port = free_port();
    let _running = (subject.run)(port)?;
    let directory = TemporaryDirectory::new();
    let script = directory.path().join("ask.lua");
    let lua = format!(
        "local n = 0
wrk.method = 'POST'
wrk.headers['content-type'] = 'application/json'
request = function()
  n = (n * 1103515245 + 12345) % 2147483648
  local key = n % {KEYS}
  return wrk.format(nil, nil, nil, {body})
end
"
    );
    fs::write(&script, lua).expect("a script");
    let url = format!("http://127.0.0.1:{port}{}", subject.path);
    let ask = |seconds: u32| wrk(&script, &url, seconds);
    // The first second fills tables, and is not counted.
    ask(1);
    let told = ask(seconds);
    let answers = match outcome {
        "allowed" => Answers::Allowed,
        // throttlecrab's status is 200 whatever it says.
        _ if subject.name == "throttlecrab" => Answers::Either,
        _ => Answers::Denied,
    };
    is_answered(&told, answers).then_some(())?;
    Some([figure(&told, "Requests/sec:"), millis(&told, "50%"), millis(&told, "99%")])
}

/// From the start of the process to its first answer.
fn starts(scale: Scale) {
    let program = program();
    let rounds = if scale == Scale::Quick { 5 } else { 21 };
    let times: Vec<f64> = (0..rounds).map(|_| first_answer(&program)).collect();
    let size = fs::metadata(&program).map_or(f64::NAN, |file| file.len() as f64 / 1e6);
    let mut table = Table::new(["", "figure"]);
    let most = times.iter().copied().fold(0.0, f64::max);
    results::samples("start to first answer, ms".to_owned(), times.clone());
    let half = median(times);
    results::goal("P13", "start to first answer", Wanted::AtMost(50.0), half, "ms");
    results::goal("P13", "the program", Wanted::AtMost(25.0), size, "MB");
    table.row(["start to first answer, median ms".to_owned(), number(half)]);
    table.row(["start to first answer, longest ms".to_owned(), number(most)]);
    table.row(["the program, MB".to_owned(), number(size)]);
    table.print("Starting `dashpot serve`", "Until the answer to a check has been read.");
}

fn first_answer(program: &Path) -> f64 {
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(["serve", "--log-level", "off", "--listen", "127.0.0.1:0"])
        .args(["--grpc-listen", "127.0.0.1:0", "--resp-listen", "127.0.0.1:0"])
        .current_dir("/")
        .stdout(Stdio::piped())
        .spawn()
        .expect("dashpot starts");
    let said = BufReader::new(child.stdout.take().expect("it is piped"));
    let _running = Running(child);
    let line = said.lines().map_while(Result::ok).find(|line| line.starts_with("listening on"));
    let address = line.and_then(|line| line.rsplit("//").next().map(str::to_owned));
    let mut stream = TcpStream::connect(address.expect("it says where")).expect("it listens");
    let body = r#"{"key":"alice","limit":"10/s"}"#;
    let request = format!(
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("it answers");
    assert_eq!(&answer, b"HTTP/1.1 200");
    began.elapsed().as_secs_f64() * 1e3
}
