//! What people regret later. Each piece of advice is one function; none of them is an error.

mod logins;
mod trust;
mod weights;

use std::time::Duration;

use dashpot::{Algorithm, Policy};

use crate::Fact;
use crate::config::Config;
use crate::matching::Condition;
use crate::problem::Problems;
use crate::rule::{Absent, Enforced, Priority, Rule};
use crate::set::RuleSet;
use crate::source::Span;

/// A set that can be used, and where its rules are written.
struct Case<'c> {
    set: &'c RuleSet,
    config: &'c Config,
}

pub(crate) fn advise(set: &RuleSet, config: &Config, problems: &mut Problems) {
    let case = Case { set, config };
    for advice in [
        nothing_is_limited,
        only_addresses,
        logins::only_logins,
        only_one_counter,
        one_limit_everywhere,
        logins::lax_logins,
        logins::logins_like_all_else,
        long_bans,
        stampedes,
        keys_of_the_callers_choice,
        weights::weights_of_the_callers_choice,
        trust::lists_of_the_callers_choice,
        trust::nobody_is_believed,
        trust::everybody_is_believed,
        never_reached,
        weights::costs_over_weighted_limits,
        weights::costs_over_parts_of_classes,
        tiers_without_limits,
    ] {
        advice(&case, problems);
    }
}

impl<'c> Case<'c> {
    /// The rules, and where their names are.
    fn rules(&self) -> impl Iterator<Item = (&'c Rule, &'c Span)> {
        let spans = self
            .config
            .rules()
            .iter()
            .map(|rule| rule.value.name.as_ref().map_or(&rule.span, |name| &name.span));
        self.set.rules.iter().zip(spans)
    }

    fn first(&self) -> Option<&'c Span> {
        self.rules().next().map(|(_, span)| span)
    }

    /// The rules that can deny.
    fn enforced(&self) -> impl Iterator<Item = &'c Rule> {
        let can_deny =
            |rule: &&Rule| !matches!(rule.enforced, Enforced::Never | Enforced::Percent(0));
        self.set.rules.iter().filter(can_deny)
    }
}

fn nothing_is_limited(case: &Case<'_>, problems: &mut Problems) {
    if case.set.rules.is_empty() {
        problems.advise(&Span::default(), "there are no rules, so nothing is limited");
    }
}

fn only_addresses(case: &Case<'_>, problems: &mut Problems) {
    let mut facts = case.set.rules.iter().flat_map(Rule::facts).peekable();
    if facts.peek().is_some()
        && facts.all(|fact| matches!(fact, Fact::Ip | Fact::Path))
        && let Some(span) = case.first()
    {
        let message = "everybody is counted by address only: an office shares one limit, and who \
                       has many addresses has many limits";
        problems
            .advise(span, message)
            .hint("count those you know by who they are: by = [\"api_key | user | ip\"]");
    }
}

fn only_one_counter(case: &Case<'_>, problems: &mut Problems) {
    // What this process takes at once is nobody's limit.
    let mut rules = case.set.rules.iter().filter(|rule| rule.capacity.is_none()).peekable();
    if rules.peek().is_some()
        && rules.all(|rule| rule.by.is_empty())
        && let Some(span) = case.first()
    {
        let message = "all limits are shared by all callers: one of them can use them up for all";
        problems.advise(span, message).hint("add a rule with by = [\"ip\"], or by user");
    }
}

fn has_one_limit(set: &RuleSet) -> bool {
    matches!(set.rules.as_slice(), [rule] if rule.condition.is_everything() && !rule.by.is_empty())
        && set.priorities.is_empty()
}

fn one_limit_everywhere(case: &Case<'_>, problems: &mut Problems) {
    if has_one_limit(case.set)
        && let Some(span) = case.first()
    {
        let message = "one limit for everything: what is right for reading is too much for writing, \
                       and far too much for logging in";
        let hint = "add rules for expensive routes, with match = { path = \"/…\" }";
        problems.advise(span, message).hint(hint);
    }
}

fn long_bans(case: &Case<'_>, problems: &mut Problems) {
    const LONG: Duration = Duration::from_secs(3600);
    for (rule, span) in case.rules() {
        let is_ban = |policy: &&Policy| {
            let all_at_once = matches!(
                policy.algorithm(),
                Algorithm::FixedWindow | Algorithm::SlidingLog | Algorithm::SlidingWindow
            );
            let few = matches!(policy.quota().count(), Some(1..=20));
            all_at_once && few && policy.quota().window().is_some_and(|w| w.length() > LONG)
        };
        if let Some(policy) = rule.policies().find(is_ban) {
            let message = format!(
                "after {} requests, a caller may wait for as long as `{}`: that is a ban",
                policy.limit(),
                policy.quota()
            );
            let hint = "a token-bucket of the same rate gives back one after another";
            problems.advise(span, message).hint(hint);
        }
    }
}

fn stampedes(case: &Case<'_>, problems: &mut Problems) {
    if !case.set.headers.jitter.is_zero() {
        return;
    }
    for (rule, span) in case.rules() {
        if rule.policies().any(|policy| policy.algorithm() == Algorithm::FixedWindow) {
            let message = "all who wait for a fixed window come back at its end, at once";
            let hint = "write jitter = \"5s\" under [headers], or use sliding-window";
            problems.advise(span, message).hint(hint);
        }
    }
}

fn keys_of_the_callers_choice(case: &Case<'_>, problems: &mut Problems) {
    for (rule, span) in case.rules() {
        let chosen = rule.facts().find(|fact| is_chosen(fact, &rule.condition));
        let Some(fact) = chosen else { continue };
        let bounds = |other: &&Rule| {
            let firm = |fact: &Fact| !is_chosen(fact, &other.condition);
            let denies = other.policies().any(|policy| !policy.quota().is_unlimited());
            denies
                && other.absent != Absent::Skip
                && !other.by.is_empty()
                && other.facts().all(firm)
        };
        if !case.enforced().filter(bounds).any(|other| other.condition.covers(&rule.condition)) {
            let message = format!(
                "a caller can choose `{fact}`, and so begin anew with each request; no rule by `ip` \
                 covers these requests"
            );
            problems.advise(span, message).hint("add a rule with by = [\"ip\"] that matches them");
        }
    }
}

/// Whether a caller can be somebody else with each request by this fact. A path that is matched as a
/// whole is no choice.
fn is_chosen(fact: &Fact, condition: &Condition) -> bool {
    match fact {
        Fact::Path => {
            condition.paths.is_empty() || condition.paths.iter().any(|path| !path.is_exact())
        }
        Fact::Host => condition.hosts.is_empty(),
        Fact::Method => condition.methods.is_none(),
        _ => fact.is_callers_choice(),
    }
}

fn never_reached(case: &Case<'_>, problems: &mut Problems) {
    for (rule, span) in case.rules() {
        let covering = |priority: &&Priority| {
            priority.is_unlimited() && priority.condition.covers(&rule.condition)
        };
        if rule.capacity.is_none()
            && let Some(priority) = case.set.priorities.iter().find(covering)
        {
            let message =
                format!("this never matters: priority `{}` is unlimited here", priority.name);
            problems.advise(span, message);
        }
        if rule.enforced == Enforced::Percent(0) {
            let message = "enforced for 0 of 100 keys, which is nobody";
            problems.advise(span, message).hint("write shadow = true if that is meant");
        }
        if rule.capacity.is_none() && rule.policies().all(|policy| policy.quota().is_unlimited()) {
            problems.advise(span, "this never denies: all its limits are `unlimited`");
        }
        let bodiless = |name: &String| matches!(name.as_str(), "GET" | "HEAD" | "OPTIONS");
        let methods = rule.condition.methods.as_ref();
        if rule.facts().any(Fact::is_in_body)
            && methods.is_some_and(|methods| methods.names().iter().all(bodiless))
        {
            problems.advise(span, "these requests have no body, so its fields are always absent");
        }
    }
}

fn tiers_without_limits(case: &Case<'_>, problems: &mut Problems) {
    for (rule, span) in case.rules().filter(|(rule, _)| rule.has_tiers()) {
        let mut unknown: Vec<&str> = { case.set.identity.keys.0.values() }
            .filter_map(|holder| holder.tier.as_deref())
            .filter(|tier| !rule.tiers.iter().any(|known| known.name.as_deref() == Some(tier)))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            let message = format!(
                "keys were handed out for {}, of which this rule says nothing: they get the default",
                unknown.join(", ")
            );
            problems.advise(span, message);
        }
    }
}
