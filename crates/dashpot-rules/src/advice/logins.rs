//! Advice on where secrets are guessed.

use std::time::Duration;

use dashpot::Policy;

use super::{Case, has_one_limit};
use crate::matching::{Condition, Methods};
use crate::problem::Problems;
use crate::rule::Rule;

/// Whether it looks like a place where secrets are guessed.
fn is_login(condition: &Condition) -> bool {
    const PARTS: [&str; 7] =
        ["login", "signin", "sign-in", "sign_in", "password", "passwd", "signup"];
    // Too short to stand for themselves within others: there are authors, and tokenizers.
    const WORDS: [&str; 7] = ["auth", "oauth", "oauth2", "authenticate", "token", "otp", "2fa"];
    condition.paths.iter().any(|path| {
        let path = path.to_string().to_ascii_lowercase();
        let mut words = path.split(|c: char| !c.is_ascii_alphanumeric());
        PARTS.iter().any(|part| path.contains(part)) || words.any(|word| WORDS.contains(&word))
    })
}

pub(super) fn only_logins(case: &Case<'_>, problems: &mut Problems) {
    let rules = &case.set.rules;
    if !rules.is_empty()
        && rules.iter().all(|rule| is_login(&rule.condition))
        && let Some(span) = case.first()
    {
        let message = "only logins are limited; everything else can be called without end";
        problems.advise(span, message).hint("add a rule without `match`, by user or address");
    }
}

/// Units a day, in the long run; the least of its limits.
fn per_day(rule: &Rule) -> u128 {
    let rate = |policy: &Policy| {
        let (count, window) = (policy.quota().count()?, policy.quota().window()?);
        let nanos = window.length().as_nanos().max(1);
        Some(u128::from(count) * Duration::from_secs(86_400).as_nanos() / nanos)
    };
    rule.policies().filter_map(rate).min().unwrap_or(u128::MAX)
}

/// Ten guesses a minute: more is no obstacle.
const STRICT: u128 = 10 * 60 * 24;

/// Whether it leaves nobody enough attempts to guess a password.
fn is_strict(rule: &Rule) -> bool {
    !rule.by.is_empty() && per_day(rule) <= STRICT
}

pub(super) fn lax_logins(case: &Case<'_>, problems: &mut Problems) {
    for (rule, span) in case.rules().filter(|(rule, _)| is_login(&rule.condition)) {
        let covers = |other: &&Rule| other.condition.covers(&rule.condition);
        if !case.enforced().filter(covers).any(is_strict) {
            let message = "nothing here is strict: more than ten attempts a minute let passwords \
                           be guessed";
            problems.advise(span, message).hint("as in limits = [\"5/5min\"], by = [\"ip\"]");
        }
    }
}

/// A rule for everything is about logins, too, and is never strict enough for them.
pub(super) fn logins_like_all_else(case: &Case<'_>, problems: &mut Problems) {
    let login = Condition {
        methods: "POST".parse().ok().map(|post| Methods::new([post])),
        paths: "/login".parse().into_iter().collect(),
        ..Condition::default()
    };
    // Who has one limit for all is told so.
    let is_told =
        has_one_limit(case.set) || case.set.rules.iter().any(|rule| is_login(&rule.condition));
    let covers = |rule: &Rule| rule.condition.covers(&login);
    let strict = || case.enforced().any(|rule| covers(rule) && is_strict(rule));
    if let Some((_, span)) = case.rules().find(|(rule, _)| covers(rule))
        && !is_told
        && !strict()
    {
        let message = "no rule is about logins, so passwords can be guessed as fast as all else is \
                       called";
        let hint = "add a rule for where people log in, if they do: match = { path = \"/login\" }, \
                    by = [\"ip\"], limits = [\"5/5min\"]";
        problems.advise(span, message).hint(hint);
    }
}
