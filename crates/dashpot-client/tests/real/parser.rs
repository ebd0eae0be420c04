//! A second opinion: somebody else's parser reads what we read.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use dashpot::Timestamp;
use dashpot_client::Told;
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value, json};

use super::support::readers;

/// Tue, 14 Nov 2023 22:13:20 GMT.
const NOW: u64 = 1_700_000_000;

type Fields = Vec<(String, String)>;

/// What ratelimit-header-parser makes of each answer.
fn others(answers: &[Fields]) -> Vec<Value> {
    let home = readers(&["ratelimit-header-parser"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/parser.mjs");
    let mut node = Command::new("node")
        .args([&script, &home])
        .arg(NOW.to_string())
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is no node; scripts/test installs it");
    let object = |fields: &Fields| -> Map<String, Value> {
        fields.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
    };
    let lines: String = answers.iter().map(|it| format!("{}\n", Value::from(object(it)))).collect();
    let mut input = node.stdin.take().unwrap();
    let writer = thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "node said {}", output.status);
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What we make of one, in the same words.
fn ours(fields: &Fields) -> Value {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    let told = Told::read(&headers, Timestamp::from_secs(NOW));
    let [known] = &*told.allowances else { panic!("{fields:?} read as {told:?}") };
    let reset = known.reset_after.unwrap();
    assert_eq!(reset.subsec_nanos(), 0, "{fields:?} read as {told:?}");
    json!({
        "limit": known.limit,
        "remaining": known.remaining,
        "reset": NOW + reset.as_secs(),
    })
}

#[test]
fn somebody_else_reads_the_older_forms_as_we_do() {
    let numbers = [(1, 0), (5, 5), (60, 59), (5000, 4999), (1_000_000, 1)];
    let resets = [
        "0",
        "1",
        "59",
        "3600",
        "86400",
        "1700000001",
        "1700003600",
        "2023-11-14T22:14:20Z",
        "2023-11-14T23:13:50+01:00",
        "Tue, 14 Nov 2023 22:13:50 GMT",
    ];
    let mut answers: Vec<Fields> = Vec::new();
    for (limit, remaining) in numbers {
        for reset in resets {
            for prefix in ["ratelimit-", "x-ratelimit-", "x-rate-limit-"] {
                for limit in [format!("{limit}"), format!("{limit}, {limit};w=60;name=\"per ip\"")]
                {
                    let three = [("limit", limit), ("remaining", remaining.to_string())];
                    let three = three.into_iter().chain([("reset", reset.to_owned())]);
                    answers.push(three.map(|(kind, it)| (format!("{prefix}{kind}"), it)).collect());
                }
            }
        }
        for reset in [0, 1, 59, 86_400] {
            let state = format!("limit={limit}, remaining={remaining}, reset={reset}");
            let policy = format!("{limit};w=60");
            answers.push(vec![
                ("ratelimit".to_owned(), state),
                ("ratelimit-policy".to_owned(), policy),
            ]);
        }
    }
    let others = others(&answers);
    assert_eq!(others.len(), answers.len());
    for (fields, mut theirs) in answers.iter().zip(others) {
        // A number of theirs may have a fraction, and has none.
        theirs["reset"] = json!(theirs["reset"].as_f64().unwrap() as u64);
        assert_eq!(ours(fields), theirs, "{fields:?}");
    }
}
