//! Rules.

use std::sync::Arc;

use dashpot::{Algorithm, Clock, Cost};

use super::limits::Names;
use super::{Compiler, list};
use crate::config::{Alternative, Alternatives, OnDenySection, RuleSection, SettleText};
use crate::matching::{Condition, PathPattern};
use crate::rule::{Enforced, Named, Priority, Rule, Settle};
use crate::set::StoreSettings;
use crate::source::Written;
use crate::tally::Tally;
use crate::{Fact, Identity, OnDeny};

impl Compiler<'_> {
    pub(super) fn rule(
        &mut self,
        written: &Written<RuleSection>,
        identity: &Identity,
        store: &StoreSettings,
        priorities: &[Priority],
        names: &mut Names,
        clock: &Arc<dyn Clock>,
    ) -> Option<Rule> {
        let section = &written.value;
        let condition = self.condition(section.r#match.as_ref());
        let by = self.by(section, &condition);
        let settle = self.settle(section);
        let enforced = self.enforced(section);
        let on_deny = self.on_deny(section.on_deny.as_ref());
        let cost = self.cost(section);
        let name = section.name.as_ref()?;
        let name = Written { value: name.value.0.clone(), span: name.span.clone() };
        if let Some(known) = names.rules.get(&name.value) {
            self.taken("rule", &name.value, known, &name.span);
        } else {
            names.rules.insert(name.value.clone(), name.span.clone());
        }
        let tiers = self.tiers(&name, section, identity, priorities);
        let adaptive = self.adaptive(section, &tiers, clock);
        let classes = self.classes(section, &tiers);
        let capacity = self.capacity(section, classes, clock);
        self.unique(&name, &tiers, names);
        let permits = tiers.iter().flat_map(|tier| &tier.limits);
        let permits = { permits }.any(|limit| limit.algorithm == Algorithm::Concurrency);
        let settle = match settle {
            Settle::Never if permits => Settle::Release,
            _ if permits => {
                let message = "permits are given back when the response was sent, whatever it says; \
                               leave out `settle` and `charge_on`";
                let settle = section.settle.as_ref().map(|settle| &settle.span);
                let charge_on = section.charge_on.as_ref().map(|statuses| &statuses.span);
                self.error(settle.or(charge_on).unwrap_or(&name.span), message);
                Settle::Release
            }
            settle => settle,
        };
        let on_store_error = section.on_store_error.as_ref();
        let needs_body = by.iter().flatten().any(|named| identity.is_in_body(&named.fact))
            || (section.tiers.is_some() && identity.is_in_body(&Fact::Tier));
        Some(Rule {
            name: name.value,
            // Where it is among the others is known later.
            number: 0,
            condition,
            by,
            needs_body,
            tiers,
            cost,
            settle,
            enforced,
            on_store_error: on_store_error.map_or(store.on_error, |written| written.value),
            absent: section.absent.as_ref().map(|absent| absent.value).unwrap_or_default(),
            on_deny,
            adaptive,
            classes,
            capacity,
            tally: Arc::new(Tally::default()),
        })
    }

    fn by(&mut self, section: &RuleSection, condition: &Condition) -> Vec<Vec<Named>> {
        self.not_empty(section.by.as_ref(), "by");
        let mut by = Vec::new();
        for Written { value: Alternatives(facts), span } in list(section.by.as_ref()) {
            for Alternative { fact, part } in facts {
                let span = &span.part(part.clone());
                self.available(fact, span);
                if let Fact::Param(name) = fact {
                    let has = |path: &PathPattern| path.params().any(|known| known == name);
                    if condition.paths.is_empty() || !condition.paths.iter().all(has) {
                        let message = format!("`{{{name}}}` is not in every path of this rule");
                        let hint = format!("write match.path = \"/…/{{{name}}}\"");
                        self.error_with(span, message, hint);
                    }
                }
            }
            let name = |Alternative { fact, .. }: &Alternative| Named::new(fact);
            by.push(facts.iter().map(name).collect());
        }
        by
    }

    fn cost(&mut self, section: &RuleSection) -> Cost {
        let Some(cost) = &section.cost else { return Cost::ONE };
        if cost.value == 0 {
            self.error(&cost.span, "a cost of 0 limits nothing; leave the rule out instead");
        }
        Cost::new(cost.value)
    }

    fn settle(&mut self, section: &RuleSection) -> Settle {
        if let (Some(settle), Some(_)) = (&section.settle, &section.charge_on) {
            self.error(&settle.span, "`settle` and `charge_on` do not go together; choose one");
        }
        if let Some(settle) = &section.settle {
            return match &settle.value {
                SettleText::Bytes => Settle::Bytes,
                SettleText::Fact(Fact::Header(name)) => Settle::Header(name.clone()),
                SettleText::Fact(_) => {
                    let message = "a cost is settled by a response header, or by `bytes`";
                    let hint = "write settle = \"header:x-tokens-used\"";
                    self.error_with(&settle.span, message, hint);
                    Settle::Never
                }
            };
        }
        if section.charge_on.is_none() {
            return Settle::Never;
        }
        self.not_empty(section.charge_on.as_ref(), "charge_on");
        let mut statuses = Vec::new();
        for status in list(section.charge_on.as_ref()) {
            match u16::try_from(status.value) {
                Ok(status @ 100..=599) => statuses.push(status),
                _ => self.error(&status.span, "a status is between 100 and 599"),
            }
        }
        Settle::ChargeOn(statuses)
    }

    fn enforced(&mut self, section: &RuleSection) -> Enforced {
        let shadow = section.shadow.as_ref().is_some_and(|shadow| shadow.value);
        let Some(percent) = &section.enforce_percent else {
            return if shadow { Enforced::Never } else { Enforced::Always };
        };
        if percent.value > 100 {
            self.error(&percent.span, "a percentage is between 0 and 100");
        }
        if shadow {
            let message = "a shadow rule is enforced for nobody; leave out `enforce_percent`";
            self.error(&percent.span, message);
        }
        match percent.value {
            100 => Enforced::Always,
            percent => Enforced::Percent(percent),
        }
    }

    fn on_deny(&mut self, section: Option<&Written<OnDenySection>>) -> Option<OnDeny> {
        let Written { value: section, .. } = section?;
        let mut on_deny = OnDeny::default();
        let is_redirect = section.redirect.is_some();
        if let Some(status) = &section.status {
            let range = if is_redirect { 300..=399 } else { 400..=599 };
            match u16::try_from(status.value) {
                Ok(value) if range.contains(&value) => on_deny.status = Some(value),
                _ => {
                    let (from, to) = range.into_inner();
                    let what = if is_redirect { "a redirect" } else { "a denial" };
                    self.error(&status.span, format!("the status of {what} is {from} to {to}"));
                }
            }
        }
        if let Some(redirect) = &section.redirect {
            let begins = ["/", "http://", "https://"];
            let begins = begins.iter().any(|begin| redirect.value.starts_with(begin));
            if !begins || !redirect.value.bytes().all(|byte| byte.is_ascii_graphic()) {
                let message = "a redirect goes to a path or a URL, in plain ASCII";
                self.error_with(&redirect.span, message, "write redirect = \"/captcha\"");
            }
            if let Some(body) = &section.body {
                self.error(&body.span, "a redirect has no body");
            }
        }
        if let Some(kind) = &section.content_type
            && !kind.value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        {
            self.error(&kind.span, "a content type is plain ASCII, as in \"text/html\"");
        }
        on_deny.redirect = section.redirect.as_ref().map(|redirect| redirect.value.clone());
        on_deny.body = section.body.as_ref().map(|body| body.value.clone());
        on_deny.content_type = section.content_type.as_ref().map(|kind| kind.value.clone());
        Some(on_deny)
    }
}
