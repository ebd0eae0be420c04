//! Advice on priorities.

use dashpot::{Class, Policy};

use super::Case;
use crate::Fact;
use crate::problem::Problems;
use crate::rule::{Limit, Priority};
use crate::weight::Weight;

pub(super) fn weights_of_the_callers_choice(case: &Case<'_>, problems: &mut Problems) {
    let written = case.config.priorities();
    for (priority, written) in case.set.priorities.iter().zip(written) {
        let Priority { condition, weight, class, .. } = priority;
        let privilege = match weight {
            Some(Weight::Unlimited) => Some("weight"),
            Some(weight) if weight.scale(1_000) > 1_000 => Some("weight"),
            _ => (*class == Class::Critical).then_some("class"),
        };
        let chosen = condition
            .facts
            .iter()
            .find(|(fact, _)| matches!(fact, Fact::Header(_) | Fact::Cookie(_) | Fact::Query(_)));
        if let Some((privilege, (fact, _))) = privilege.zip(chosen) {
            let message = format!("a caller can choose `{fact}`, and so this {privilege}");
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

pub(super) fn costs_over_parts_of_classes(case: &Case<'_>, problems: &mut Problems) {
    for (rule, span) in case.rules().filter(|(rule, _)| rule.cost.units() > 1) {
        let Some(classes) = rule.classes else { continue };
        let policies = || rule.tiers.iter().flat_map(|tier| tier.policies(None).iter());
        for class in [Class::Normal, Class::Background] {
            let part = |policy: &Policy| policy.reduced_to(classes.percent(class)).limit();
            let too_small = |policy: &&Policy| {
                rule.cost.units() <= policy.limit() && part(policy) < rule.cost.units()
            };
            if let Some(policy) = policies().find(too_small) {
                let message = format!(
                    "a cost of {} never passes for class `{class}`, which may fill {} of `{}`",
                    rule.cost.units(),
                    part(policy),
                    policy.quota(),
                );
                problems.advise(span, message).hint("raise the limit, or the class's part");
                break;
            }
        }
    }
}
