//! What changes from one rule file to another, in words.

use std::collections::HashMap;

use dashpot::Policy;

use crate::RuleSet;
use crate::rule::Rule;

/// What changes from one rule file to another, a line each. Nothing if nothing does.
///
/// ```
/// use dashpot_rules::{RuleSet, diff};
///
/// let before = RuleSet::parse("[[rule]]\nname = 'api'\nlimits = ['60/min']")?;
/// let after = RuleSet::parse("[[rule]]\nname = 'api'\nlimits = ['100/min']")?;
/// assert_eq!(
///     diff(&before, &after),
///     ["rule `api`: limits 60/min → 100/min; counts go on"],
/// );
/// # Ok::<(), dashpot_rules::RuleErrors>(())
/// ```
#[must_use]
pub fn diff(before: &RuleSet, after: &RuleSet) -> Vec<String> {
    let mut lines = Vec::new();
    let (old, new) = (by_name(before), by_name(after));
    for rule in &before.rules {
        if !new.contains_key(rule.name.as_str()) {
            lines.push(format!("rule `{}` is gone: {}", rule.name, in_short(rule)));
        }
    }
    for rule in &after.rules {
        match old.get(rule.name.as_str()) {
            None => lines.push(format!("rule `{}` is new: {}", rule.name, in_short(rule))),
            Some(known) => compare(known, rule, &mut lines),
        }
    }
    compare_priorities(before, after, &mut lines);
    let mut section = |name: &str, changed: bool| {
        if changed {
            lines.push(format!("{name} is different"));
        }
    };
    section("[store]", before.store != after.store);
    section("[memory]", before.memory != after.memory);
    section("[serve]", before.serve != after.serve);
    section("[proxy]", before.proxy != after.proxy);
    let identity = |set: &RuleSet| (set.identity.clone(), set.tokens.clone());
    section("[identity]", identity(before) != identity(after));
    section("[headers]", before.headers != after.headers);
    section("[allow]", before.allow != after.allow);
    section("[block]", before.block != after.block);
    lines
}

fn by_name(set: &RuleSet) -> HashMap<&str, &Rule> {
    set.rules.iter().map(|rule| (rule.name.as_str(), rule)).collect()
}

/// What it is about, by what, and how much.
fn in_short(rule: &Rule) -> String {
    let words: Vec<_> = rule.summary().into_iter().take(3).map(|(_, value)| value).collect();
    words.join(", ")
}

fn compare(before: &Rule, after: &Rule, lines: &mut Vec<String>) {
    let (old, new) = (before.summary(), after.summary());
    let say = |of: &[(&str, String)], item: &str| {
        let said = of.iter().find(|(known, _)| *known == item);
        said.map_or_else(|| "none".to_owned(), |(_, value)| value.clone())
    };
    let only_new = new.iter().filter(|(item, _)| !old.iter().any(|(known, _)| known == item));
    let items = old.iter().chain(only_new).map(|(item, _)| *item);
    let changed: Vec<_> = items
        .map(|item| (item, say(&old, item), say(&new, item)))
        .filter(|(_, old, new)| old != new)
        .map(|(item, old, new)| format!("{item} {old} → {new}"))
        .collect();
    if changed.is_empty() {
        return;
    }
    let fate = if before.by != after.by {
        "; keys are cut anew"
    } else if after.policies().all(|new| before.policies().any(|old| goes_on(old, new))) {
        "; counts go on"
    } else {
        "; what has another window or algorithm is counted anew"
    };
    lines.push(format!("rule `{}`: {}{fate}", after.name, changed.join(", ")));
}

/// Whether what was counted under one policy goes on under the other.
fn goes_on(old: &Policy, new: &Policy) -> bool {
    let identity = |policy: &Policy| {
        (
            policy.name().to_owned(),
            policy.algorithm(),
            policy.quota().window(),
            policy.zone().clone(),
        )
    };
    identity(old) == identity(new)
}

fn compare_priorities(before: &RuleSet, after: &RuleSet, lines: &mut Vec<String>) {
    let show = |set: &RuleSet| -> Vec<(String, String)> {
        let show = |priority: &crate::rule::Priority| {
            let what = format!("{}, {}", priority.condition.summary(), priority.summary());
            (priority.name.clone(), what)
        };
        set.priorities.iter().map(show).collect()
    };
    let (old, new) = (show(before), show(after));
    for (name, what) in &old {
        match new.iter().find(|(other, _)| other == name) {
            None => lines.push(format!("priority `{name}` is gone: {what}")),
            Some((_, now)) if now != what => {
                lines.push(format!("priority `{name}`: {what} → {now}"));
            }
            Some(_) => {}
        }
    }
    for (name, what) in &new {
        if !old.iter().any(|(other, _)| other == name) {
            lines.push(format!("priority `{name}` is new: {what}"));
        }
    }
    let order = |list: &[(String, String)]| -> Vec<String> {
        list.iter().map(|(name, _)| name.clone()).collect()
    };
    let (mut one, mut two) = (order(&old), order(&new));
    let moved = one != two;
    one.sort();
    two.sort();
    if moved && one == two {
        lines.push("priorities are in another order".to_owned());
    }
}
