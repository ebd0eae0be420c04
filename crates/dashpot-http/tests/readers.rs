//! What we write, read by parsers that other people wrote for other people's clients.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dashpot::{Algorithm, Check, Decision, ManualClock, MemoryStore, Policy, Timestamp};
use dashpot_http::{Wait, headers};
use dashpot_rules::{HeaderStyle, Headers};
use http::HeaderMap;
use serde_json::{Value, json};

/// Where `scripts/readers` puts the parsers.
fn home() -> PathBuf {
    match std::env::var_os("DASHPOT_READERS") {
        Some(home) => home.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/readers"),
    }
}

/// What the parsers make of each answer.
fn read(answers: &[Value]) -> Vec<Value> {
    let home = home();
    let is_there = home.join("node_modules/structured-headers").exists()
        && home.join("node_modules/ratelimit-header-parser").exists();
    assert!(is_there, "the parsers are not in {}; scripts/test installs them", home.display());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/read.mjs");
    let mut node = Command::new("node")
        .args([&script, &home])
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is no node; scripts/test installs it");
    let lines: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    let mut input = node.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "node said {}", output.status);
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn policy(name: &str, quota: &str, algorithm: Algorithm) -> Policy {
    Policy::builder(name, quota.parse().unwrap()).algorithm(algorithm).build().unwrap()
}

/// Decisions of all algorithms: some pass, some do not.
fn decisions(policies: &[Policy]) -> Vec<Decision<'_>> {
    let clock = ManualClock::new(Timestamp::from_nanos(1_700_000_000_250_000_000));
    let store = MemoryStore::with_clock(clock.clone());
    let mut decisions = Vec::new();
    for pause in [0, 0, 700, 700, 5000] {
        clock.advance(Duration::from_millis(pause));
        for policy in policies {
            for cost in [0, 1, 3] {
                decisions.push(store.decide_now(&[Check::new(policy, "a").cost(cost)]));
            }
        }
        let all: Vec<_> = policies.iter().map(|policy| Check::new(policy, "b")).collect();
        decisions.push(store.decide_now(&all));
    }
    decisions
}

fn seconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000_000)).unwrap()
}

fn object(told: &HeaderMap) -> Value {
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), Value::from(value.to_str().unwrap()))
    };
    Value::Object(told.iter().map(field).collect())
}

#[test]
fn others_understand_what_we_write() {
    let mut policies = vec![
        policy("token", "5/10s", Algorithm::TokenBucket),
        policy("with \"quotes\" and \\, 100 %", "7/min", Algorithm::LeakyBucket),
        policy("fixed", "4/min", Algorithm::FixedWindow),
        policy("log", "6/h", Algorithm::SlidingLog),
        policy("window", "8/day", Algorithm::SlidingWindow),
        policy("none", "0/s", Algorithm::TokenBucket),
        policy("jobs", "6 concurrent", Algorithm::Concurrency),
        policy("huge", "18446744073709551615/s", Algorithm::TokenBucket),
    ];
    let queue = Policy::builder("queue", "1/s".parse().unwrap())
        .algorithm(Algorithm::LeakyBucket)
        .queue(4)
        .build();
    policies.push(queue.unwrap());
    let decisions = decisions(&policies);
    assert!(decisions.iter().any(Decision::is_allowed));
    assert!(decisions.iter().any(|decision| decision.retry_after().is_some()));

    let mut asked = Vec::new();
    for decision in &decisions {
        for style in HeaderStyle::ALL {
            let mut config = Headers::default();
            config.styles = vec![style];
            let mut told = HeaderMap::new();
            let wait = Wait::of(decision, Duration::ZERO);
            headers::describe(decision, &wait, &config, &mut told);
            let answer = json!({ "style": style.name(), "headers": object(&told) });
            asked.push((decision, style, wait, answer));
        }
    }
    let answers: Vec<_> = asked.iter().map(|(.., answer)| answer.clone()).collect();
    let understood = read(&answers);
    assert_eq!(understood.len(), asked.len());
    for ((decision, style, wait, answer), understood) in asked.iter().zip(&understood) {
        compare(decision, *style, wait, understood)
            .unwrap_or_else(|what| panic!("{what}: {answer} read as {understood}"));
    }
}

fn compare(
    decision: &Decision<'_>,
    style: HeaderStyle,
    wait: &Wait,
    understood: &Value,
) -> Result<(), String> {
    let equal = |what: &str, got: &Value, wanted: Value| {
        if *got == wanted { Ok(()) } else { Err(format!("{what} is {got}, not {wanted}")) }
    };
    let (structured, parsed) = (&understood["structured"], &understood["parsed"]);
    let [status] = decision.statuses() else {
        // Of several: all are listed.
        let by_clock =
            decision.statuses().iter().filter(|it| it.policy().quota().window().is_some());
        let listed = structured["ratelimit-policy"].as_array().map(Vec::len);
        return match style {
            HeaderStyle::Ietf => equal("number", &json!(listed), json!(decision.statuses().len())),
            HeaderStyle::XRateLimit => Ok(()),
            _ => equal("number", &json!(listed), json!(by_clock.count())),
        };
    };
    let fifteen_digits = |number: u64| number.min(999_999_999_999_999);
    let limit = fifteen_digits(status.limit());
    let remaining = fifteen_digits(if decision.is_allowed() { status.remaining() } else { 0 });
    let reset = wait.seconds().unwrap_or(seconds(status.reset_after()));
    match style {
        HeaderStyle::Ietf => {
            let policy = &structured["ratelimit-policy"][0];
            equal("name", &policy[0], json!(status.policy().name()))?;
            equal("q", &policy[1]["q"], json!(limit))?;
            let is_concurrent = status.policy().quota().is_concurrent();
            equal("w", &json!(policy[1]["w"].is_null()), json!(is_concurrent))?;
            let unit = if is_concurrent { json!("concurrent-requests") } else { Value::Null };
            equal("qu", &policy[1]["qu"], unit)?;
            let state = &structured["ratelimit"][0];
            equal("name", &state[0], json!(status.policy().name()))?;
            equal("r", &state[1]["r"], json!(remaining))?;
            if !decision.is_allowed() {
                equal("t", &state[1]["t"], json!(wait.seconds()))?;
            }
        }
        HeaderStyle::Draft07 => {
            equal("limit", &structured["ratelimit"]["limit"][0], json!(limit))?;
            equal("remaining", &structured["ratelimit"]["remaining"][0], json!(remaining))?;
            equal("reset", &structured["ratelimit"]["reset"][0], json!(reset))?;
        }
        HeaderStyle::Draft06 => {
            equal("limit", &structured["ratelimit-limit"][0], json!(limit))?;
            equal("remaining", &structured["ratelimit-remaining"][0], json!(remaining))?;
            equal("reset", &structured["ratelimit-reset"][0], json!(reset))?;
        }
        _ => {
            let at = decision.at().since(Timestamp::EPOCH) + status.reset_after();
            equal("reset", &parsed["reset_at"], json!(seconds(at)))?;
        }
    }
    // The other parser knows all forms but today's.
    if style != HeaderStyle::Ietf {
        equal("limit for others", &parsed["limit"], json!(limit))?;
        equal("remaining for others", &parsed["remaining"], json!(remaining))?;
    }
    if matches!(style, HeaderStyle::Draft06 | HeaderStyle::Draft07) {
        equal("reset for others", &parsed["reset_in"], json!(reset))?;
    }
    Ok(())
}
