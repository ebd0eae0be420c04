//! A file of envoyproxy/ratelimit as it is written.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::{Location, Spanned};

use super::problem::Problem;

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) domain: Option<Spanned<String>>,
    pub(super) descriptors: Option<Vec<Spanned<Descriptor>>>,
}

/// What is asked about, at one level.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Descriptor {
    pub(super) key: Option<Spanned<String>>,
    pub(super) value: Option<Spanned<String>>,
    pub(super) rate_limit: Option<Spanned<RateLimit>>,
    pub(super) descriptors: Option<Vec<Spanned<Descriptor>>>,
    pub(super) shadow_mode: Option<bool>,
    pub(super) share_threshold: Option<Spanned<bool>>,
    pub(super) detailed_metric: Option<Spanned<bool>>,
    pub(super) value_to_metric: Option<Spanned<bool>>,
    pub(super) quota_mode: Option<Spanned<bool>>,
    pub(super) metadata: Option<Spanned<IgnoredAny>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateLimit {
    pub(super) unit: Option<Spanned<String>>,
    pub(super) requests_per_unit: Option<u32>,
    pub(super) unlimited: Option<bool>,
    pub(super) name: Option<String>,
    pub(super) replaces: Option<Vec<Spanned<Replaced>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replaced {
    pub(super) name: Option<String>,
}

/// Reads a file, or says where it cannot be read.
pub(super) fn read(name: &str, text: &str) -> Result<File, Problem> {
    // Files of a hundred thousand limits are read; what refers to itself over and over is not.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: 4_000_000,
            max_events: 12_000_000,
            max_depth: 200,
            max_total_scalar_bytes: 256 * 1024 * 1024,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map(|at| place(&at));
        let told = error.without_snippet().to_string();
        // The place is told in front.
        let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(message, _)| message);
        Problem::new(name, place, in_our_words(told, place.map(|place| word_at(text, place))))
    })
}

/// What the library says, to those who write YAML and no programs.
fn in_our_words(told: &str, word: Option<&str>) -> String {
    let word = word.unwrap_or_default();
    match told {
        "expected mapping start" => "keys and values are expected here".to_owned(),
        "expected sequence start" => "a list is expected here: `- …`".to_owned(),
        "expected string scalar" => "a text is expected here".to_owned(),
        _ if told.starts_with("invalid u32") => {
            format!("`{word}` is no whole number from 0 to {}", u32::MAX)
        }
        _ if told.starts_with("invalid bool") => format!("`{word}` is neither true nor false"),
        _ if told.starts_with("multiple YAML documents") => {
            "a file has one document: write another file".to_owned()
        }
        // What a program could do about it.
        _ => told.split(", set ").next().unwrap_or(told).to_owned(),
    }
}

/// Line and column.
pub(super) fn place(at: &Location) -> (u64, u64) {
    (at.line(), at.column())
}

fn line_at(text: &str, line: u64) -> Option<&str> {
    text.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)
}

/// The word that begins there.
fn word_at(text: &str, (line, column): (u64, u64)) -> &str {
    let rest = line_at(text, line).and_then(|line| {
        let skipped = usize::try_from(column).ok()?.checked_sub(1)?;
        line.get(line.char_indices().nth(skipped)?.0..)
    });
    rest.unwrap_or_default().split([' ', ',', '}', ']', '#']).next().unwrap_or_default()
}

/// Where the key is whose value is there: on the same line, or on one above.
pub(super) fn key_before(text: &str, value: (u64, u64), key: &str) -> (u64, u64) {
    for line in (1..=value.0).rev() {
        let written = line_at(text, line).unwrap_or_default();
        if let Some(at) = written.rfind(key) {
            let before = written.get(..at).unwrap_or_default().chars().count();
            return (line, before as u64 + 1);
        }
    }
    value
}
