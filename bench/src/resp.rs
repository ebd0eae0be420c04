//! `CL.THROTTLE` over Redis's protocol, beside `INCR` on Redis and throttlecrab.
//!
//! All are asked by `redis-benchmark`, one thread and 50 connections, on the same machine: what it takes is taken from all
//! alike, though an answer of five numbers takes it longer to read than one.

use std::fs;
use std::process::{Command, Stdio};

use dashpot_testkit::process::{free_port, start};

use crate::Scale;
use crate::results::{self, Wanted};
use crate::servers::{Running, at, dashpot, medians, throttlecrab, wait_for};
use crate::table::{Table, count, number};

/// Keys to choose from, so that none is hot.
const KEYS: &str = "10000";

/// A server, and what it is asked.
struct Subject {
    name: &'static str,
    answers: &'static str,
    run: fn(u16) -> Option<Running>,
    command: &'static [&'static str],
    /// The first bytes of an answer that is the one asked for.
    expected: &'static str,
}

const ALLOW: [&str; 3] = ["15", "1000000", "1"];
// A burst of 1 is one that throttlecrab does not enforce.
const DENY: [&str; 3] = ["2", "1", "86400"];

const SUBJECTS: [Subject; 6] = [
    Subject {
        name: "Redis INCR",
        answers: "a number",
        run: redis,
        command: &["INCR", "user-__rand_int__"],
        expected: ":",
    },
    Subject {
        name: "dashpot",
        answers: "allowed",
        run: serve,
        command: &["CL.THROTTLE", "user-__rand_int__", ALLOW[0], ALLOW[1], ALLOW[2]],
        expected: "*5\r\n:0\r\n",
    },
    Subject {
        name: "dashpot",
        answers: "denied",
        run: serve,
        command: &["CL.THROTTLE", "user-__rand_int__", DENY[0], DENY[1], DENY[2]],
        expected: "*5\r\n:1\r\n",
    },
    Subject {
        name: "dashpot, one key",
        answers: "allowed",
        run: serve,
        command: &["CL.THROTTLE", "user", "1000000", "10000000", "1"],
        expected: "*5\r\n:0\r\n",
    },
    Subject {
        name: "throttlecrab",
        answers: "allowed",
        run: |port| throttlecrab(port, "redis"),
        command: &["THROTTLE", "user-__rand_int__", ALLOW[0], ALLOW[1], ALLOW[2]],
        expected: "*5\r\n:1\r\n",
    },
    Subject {
        name: "throttlecrab",
        answers: "denied",
        run: |port| throttlecrab(port, "redis"),
        command: &["THROTTLE", "user-__rand_int__", DENY[0], DENY[1], DENY[2]],
        expected: "*5\r\n:0\r\n",
    },
];

fn serve(port: u16) -> Option<Running> {
    let off = ["--grpc-listen", "off"];
    let listen = ["--listen", "127.0.0.1:0", "--resp-listen", &at(port)];
    dashpot(port, &[&listen[..], &off].concat())
}

/// Redis as Debian has it, without saving anything.
fn redis(port: u16) -> Option<Running> {
    let child = start("redis-server", |command| {
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no", "--logfile", "/dev/null"]);
        command.stdout(Stdio::null());
    });
    wait_for(port);
    Some(Running(child))
}

pub(crate) fn report(scale: Scale) {
    let (rounds, times) = match scale {
        Scale::Quick => (1, 1),
        Scale::Usual => (3, 2),
        Scale::Full => (9, 4),
    };
    let head =
        ["pipeline", "who", "answers", "commands/s", "÷ INCR", "p50 ms", "p99 ms", "ns of server"];
    let mut table = Table::new(head);
    // Less for those who would take minutes.
    for (pipeline, commands) in [(1, 150_000 * times), (16, 1_000_000 * times)] {
        let medians = medians(
            &format!("resp × {pipeline}"),
            rounds,
            &SUBJECTS,
            |one| format!("{} {}", one.name, one.answers),
            |subject| measure(subject, pipeline, commands),
        );
        let peer = medians.first().map_or(f64::NAN, |peer| peer[0]);
        let least = medians[1][0].min(medians[2][0]) / peer;
        let wanted = Wanted::AtLeast(if pipeline == 1 { 1.0 } else { 0.9 });
        let work = format!("CL.THROTTLE, {pipeline} at a time, less of allowed and denied");
        results::goal("P5", work, wanted, least, "× INCR");
        if pipeline > 1 {
            let named = SUBJECTS.iter().map(|one| format!("{}, {}", one.name, one.answers));
            let bars = named.zip(medians.iter().map(|figures| figures[0]));
            results::chart("resp", "Redis's protocol, 16 at a time", "commands a second", bars);
        }
        for (subject, [rate, half, most, nanos]) in SUBJECTS.iter().zip(&medians) {
            let cells = [pipeline.to_string(), subject.name.to_owned(), subject.answers.to_owned()];
            let figures = [count(*rate), format!("{:.2}", rate / peer)];
            let times = [number(*half), number(*most), count(*nanos)];
            table.row(cells.into_iter().chain(figures).chain(times));
        }
    }
    table.print(
        "CL.THROTTLE over Redis's protocol",
        "`redis-benchmark`, one thread and 50 connections, on the same machine; 10 000 keys. The last column is what a command takes of \
         the server's processor, the system's part included.",
    );
}

/// Asks so many times: commands a second, how long half and 99 of 100 take, in milliseconds, and the nanoseconds of processor
/// that each took the server.
fn measure(subject: &Subject, pipeline: u32, commands: u32) -> Option<[f64; 4]> {
    let port = free_port();
    let running = (subject.run)(port)?;
    // A server that answers a twentieth as fast is not asked as often.
    let slow = pipeline > 1 && subject.name == "throttlecrab";
    let commands = if slow { commands / 20 } else { commands };
    let ask = |commands: u32| {
        let output = Command::new("redis-benchmark")
            .args(["-p", &port.to_string(), "-c", "50", "-P", &pipeline.to_string(), "-r", KEYS])
            .args(["-n", &commands.to_string(), "--csv"])
            .args(subject.command)
            .stderr(Stdio::null())
            .output()
            .expect("redis-benchmark, which is a package of Debian's");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // The first fill tables, use up what is to be used up, and are not counted.
    ask(100_000 / if slow { 10 } else { 1 });
    if !is_as_expected(subject, port) {
        eprintln!("{} answers something else", subject.name);
        return None;
    }
    let before = processor(running.0.id());
    let told = ask(commands);
    let nanos = (processor(running.0.id()) - before) / f64::from(commands);
    // The last line: "what", then per second, mean, least, half, 95, 99 of 100, and most.
    let last = told.lines().last()?;
    let figures: Vec<f64> = last.split('"').filter_map(|cell| cell.parse().ok()).collect();
    Some([*figures.first()?, *figures.get(3)?, *figures.get(5)?, nanos])
}

/// Asks once.
fn is_as_expected(subject: &Subject, port: u16) -> bool {
    use std::io::{Read, Write};
    let words: Vec<String> =
        subject.command.iter().map(|word| word.replace("__rand_int__", "000000000007")).collect();
    let mut frame = format!("*{}\r\n", words.len());
    for word in &words {
        frame.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let mut answer = [0; 128];
    // What is to be denied is denied by the fourth time.
    for _ in 0..4 {
        stream.write_all(frame.as_bytes()).expect("somebody who listens");
        let count = stream.read(&mut answer).expect("an answer");
        if answer[..count].starts_with(subject.expected.as_bytes()) {
            return true;
        }
    }
    false
}

/// The nanoseconds of processor that a process has had.
fn processor(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u32 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|it| it.parse::<u32>().ok())
        .sum();
    // The system counts in hundredths of a second.
    f64::from(ticks) * 1e7
}
