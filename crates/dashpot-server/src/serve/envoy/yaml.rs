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
    serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location().map(|at| place(&at));
        let told = error.without_snippet().to_string();
        // The place is told in front.
        let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(message, _)| message);
        // What a program would do about it does not help whoever writes YAML.
        let told = told.split(", set ").next().unwrap_or(told);
        Problem::new(name, place, told.split("; use from_").next().unwrap_or(told))
    })
}

/// Line and column.
pub(super) fn place(at: &Location) -> (u64, u64) {
    (at.line(), at.column())
}
