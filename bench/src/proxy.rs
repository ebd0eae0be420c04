//! The gateway, beside nginx's `limit_req`, HAProxy's stick tables and Envoy's local rate limit.
//!
//! A backend of nginx's answers six bytes. Each gateway has one thread, keeps its connections to it, and limits by a request
//! header; Envoy, which has a bucket for all, by nothing. `wrk`, the backend and the gateway share the machine.

mod peers;

use std::fs;
use std::process::Command;
use std::time::Instant;

use dashpot_testkit::process::{TemporaryDirectory, free_port};

use crate::Scale;
use crate::results::{self, Wanted};
use crate::servers::{Answers, Running, figure, is_answered, medians, millis, wrk};
use crate::table::{Table, count, number};
use peers::Gateway;

pub(crate) use peers::{Limit, SUBJECTS, backend};

/// What is asked for.
struct Work {
    name: &'static str,
    limit: Limit,
    keys: &'static str,
}

const UNIFORM: &str =
    "local function key() n = (n * 1103515245 + 12345) % 2147483648; return n % 10000 end";

/// The rank of a key is where a random number falls among the sums of 1/rank.
const ZIPF: &str = "local sums, sum = {}, 0
for rank = 1, 10000 do sum = sum + 1 / rank; sums[rank] = sum end
local drawn = {}
for i = 1, 100000 do
  local at, low, high = math.random() * sum, 1, 10000
  while low < high do
    local middle = math.floor((low + high) / 2)
    if sums[middle] < at then low = middle + 1 else high = middle end
  end
  drawn[i] = low
end
local function key() n = n % 100000 + 1; return drawn[n] end";

const WORKS: [Work; 4] = [
    Work { name: "allowed", limit: Limit::Generous, keys: UNIFORM },
    Work { name: "denied", limit: Limit::Strict, keys: UNIFORM },
    Work { name: "Zipf, 100/s each", limit: Limit::PerSecond, keys: ZIPF },
    Work { name: "no limit", limit: Limit::None, keys: UNIFORM },
];

pub(crate) fn report(scale: Scale) {
    let (rounds, seconds) = match scale {
        Scale::Quick => (1, 2),
        Scale::Usual => (3, 3),
        Scale::Full => (9, 8),
    };
    let mut table = Table::new([
        "work",
        "who",
        "requests/s",
        "÷ nginx",
        "p50 ms",
        "p99 ms",
        "CPU µs each",
        "÷ nginx",
        "RSS MB",
    ]);
    for work in &WORKS {
        let medians = medians(
            &format!("proxy {}", work.name),
            rounds,
            &SUBJECTS,
            |one| one.name.to_owned(),
            |subject| measure(subject, work, seconds),
        );
        let nginx = medians.first().copied().unwrap_or([f64::NAN; 5]);
        tell(work, &medians);
        for (subject, [rate, half, most, cpu, memory]) in SUBJECTS.iter().zip(&medians) {
            if rate.is_nan() {
                continue;
            }
            table.row([
                work.name.to_owned(),
                subject.name.to_owned(),
                count(*rate),
                format!("{:.2}", rate / nginx[0]),
                number(*half),
                number(*most),
                number(*cpu),
                format!("{:.2}", cpu / nginx[3]),
                number(*memory),
            ]);
        }
    }
    table.print(
        "The gateway",
        "`wrk`, one thread and 50 connections, a backend of nginx's that answers six bytes, and a gateway of one thread, all on the \
         same machine; 10 000 keys. CPU is the gateway's own, a request, and steadier than the rest. dashpot sends rate-limit headers and, to the \
         denied, `Retry-After` and 340 bytes of JSON; the others do not.",
    );
}

/// Where the gateway stands beside the others.
fn tell(work: &Work, medians: &[[f64; 5]]) {
    let of = |name: &str| {
        let found = SUBJECTS.iter().zip(medians).find(|(one, _)| one.name == name);
        found.map_or([f64::NAN; 5], |(_, figures)| *figures)
    };
    let (own, nginx) = (of("dashpot"), of("nginx"));
    let named = format!("the gateway, {}", work.name);
    let ahead = Wanted::AtLeast(1.0);
    if matches!(work.limit, Limit::Generous | Limit::Strict) {
        results::goal("P9", named.clone(), ahead, own[0] / nginx[0], "× nginx");
        let work = format!("p99 of {named}");
        results::goal("P9", work, Wanted::AtMost(1.0), own[2] / nginx[2], "× nginx's");
        results::goal("P9", named.clone(), ahead, own[0] / of("HAProxy")[0], "× HAProxy");
        results::goal("P9", named, ahead, own[0] / of("Envoy")[0], "× Envoy");
    }
    if matches!(work.limit, Limit::Generous) {
        let mut bars = Vec::new();
        for (subject, figures) in SUBJECTS.iter().zip(medians) {
            let who = if subject.name == "dashpot" { "dashpot proxy" } else { subject.name };
            results::rate(who, figures[0]);
            bars.push((who.to_owned(), figures[0]));
        }
        results::chart("proxy", "A gateway that limits by key", "requests a second", bars);
    }
}

/// Requests a second, milliseconds for half and for 99 of 100, microseconds of CPU a request, and megabytes.
fn measure(subject: &Gateway, work: &Work, seconds: u32) -> Option<[f64; 5]> {
    let directory = TemporaryDirectory::new();
    let (backend, port) = (free_port(), free_port());
    let _backend = peers::backend(directory.path(), backend);
    let gateway = (subject.run)(directory.path(), port, backend, work.limit)?;
    let script = directory.path().join("ask.lua");
    let lua = format!(
        "local n = 0
{}
request = function() return wrk.format('GET', '/', {{ ['x-key'] = 'user-' .. key() }}) end
",
        work.keys
    );
    fs::write(&script, lua).expect("a script");
    let url = format!("http://127.0.0.1:{port}/");
    // The first second fills tables, and is not counted.
    wrk(&script, &url, 1);
    let (before, began) = (usage(&gateway), Instant::now());
    let told = wrk(&script, &url, seconds);
    let (after, took) = (usage(&gateway), began.elapsed().as_secs_f64());
    let answers = match work.limit {
        Limit::Generous | Limit::None => Answers::Allowed,
        Limit::Strict => Answers::Denied,
        _ => Answers::Either,
    };
    is_answered(&told, answers).then_some(())?;
    let rate = figure(&told, "Requests/sec:");
    let cpu = (after.0 - before.0) / (rate * took) * 1e6;
    Some([rate, millis(&told, "50%"), millis(&told, "99%"), cpu, after.1])
}

/// Seconds of CPU, and megabytes, of a process and those it has started.
fn usage(gateway: &Running) -> (f64, f64) {
    let mut all = vec![gateway.0.id()];
    let children = Command::new("pgrep").args(["-P", &gateway.0.id().to_string()]).output();
    let children = children.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    all.extend(
        children.iter().flat_map(|text| text.lines()).filter_map(|id| id.parse::<u32>().ok()),
    );
    let (mut seconds, mut megabytes) = (0.0, 0.0);
    for id in all {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        // Hundredths of a second, in all kernels people run.
        seconds += (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0;
        megabytes += ticks(21).unwrap_or(0.0) * 4096.0 / 1e6;
    }
    (seconds, megabytes)
}
