//! Advice on priorities.

use super::Case;
use crate::Fact;
use crate::problem::Problems;
use crate::rule::{Limit, Priority};
use crate::weight::Weight;

pub(super) fn weights_of_the_callers_choice(case: &Case<'_>, problems: &mut Problems) {
    let written = case.config.priorities();
    for (priority, written) in case.set.priorities.iter().zip(written) {
        let Priority { condition, weight, .. } = priority;
        let heavy = *weight == Weight::Unlimited || weight.scale(1_000) > 1_000;
        let chosen = condition
            .facts
            .iter()
            .find(|(fact, _)| matches!(fact, Fact::Header(_) | Fact::Cookie(_) | Fact::Query(_)));
        if heavy && let Some((fact, _)) = chosen {
            let message = format!("a caller can choose `{fact}`, and so this weight");
            let span = written.value.name.as_ref().map_or(&written.span, |name| &name.span);
            problems.advise(span, message).hint("match by path, or by who the caller is");
        }
    }
}

pub(super) fn costs_over_weighted_limits(case: &Case<'_>, problems: &mut Problems) {
    for (number, priority) in case.set.priorities.iter().enumerate() {
        let before = case.set.priorities.iter().take(number);
        if { before }.any(|first| first.condition.covers(&priority.condition)) {
            continue;
        }
        for (rule, span) in case.rules().filter(|(rule, _)| rule.cost.units() > 1) {
            let too_small = |limit: &&Limit| {
                let most = limit.weighed(priority).build().map_or(0, |policy| policy.limit());
                (1..rule.cost.units()).contains(&most)
            };
            let limit = rule.tiers.iter().flat_map(|tier| &tier.limits).find(too_small);
            if let Some(limit) = limit
                && !rule.condition.is_apart_from(&priority.condition)
            {
                let message = format!(
                    "a cost of {} never passes with priority `{}`, which makes `{}` of `{}`",
                    rule.cost.units(),
                    priority.name,
                    limit.weighed(priority).quota,
                    limit.quota,
                );
                problems.advise(span, message).hint("raise the limit or the weight");
            }
        }
    }
}
