//! What Prometheus hears of times of stress.

use std::fmt::Result as FmtResult;

use dashpot::GateStatus;
use dashpot_rules::{Rule, Tally};
use prometheus_client::metrics::MetricType;

use super::Out;
use crate::serve::service::Service;

impl Out<'_> {
    /// A gauge for each of several rules.
    fn gauges<'l>(
        &mut self,
        (name, help): (&str, &str),
        values: impl Iterator<Item = (&'l str, f64)>,
    ) -> FmtResult {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (rule, value) in values {
            metric.encode_family(&[("rule", rule)])?.encode_gauge(&value)?;
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody counts that far")]
    pub(super) fn overload(&mut self, service: &Service) -> FmtResult {
        let rules = service.rules.current();
        let rules = &*rules;
        let factor = |rule: &Rule| rule.adaptive().map(|one| f64::from(one.percent()) / 100.0);
        self.gauges(
            ("rule_factor", "How much of its limits a rule has, if it adapts"),
            rules.rules().iter().filter_map(|rule| Some((rule.name(), factor(rule)?))),
        )?;
        // The service itself serves nothing, and has nothing in flight.
        if service.gateway.is_some() {
            let gates = |value: fn(&GateStatus) -> u64| {
                let gates =
                    rules.rules().iter().filter_map(|rule| Some((rule.name(), rule.gate()?)));
                gates.map(move |(name, gate)| (name, value(&gate.status()) as f64))
            };
            self.gauges(
                ("capacity_limit", "How many requests a rule lets in at once, for now"),
                gates(|status| status.limit),
            )?;
            self.gauges(
                ("capacity_in_flight", "How many requests are in, by a rule with a capacity"),
                gates(|status| status.in_flight),
            )?;
            self.gauges(
                ("capacity_waiting", "How many requests wait until there is room"),
                gates(|status| status.waiting),
            )?;
        }
        let counts = |value: fn(&Tally) -> u64| {
            rules.priorities().map(move |(name, tally)| (name, value(tally) as f64))
        };
        self.counters(
            ("priority_allowed", "Requests of a priority that passed", "priority"),
            counts(Tally::allowed),
        )?;
        self.counters(
            ("priority_denied", "Requests of a priority that did not", "priority"),
            counts(Tally::denied),
        )
    }
}
