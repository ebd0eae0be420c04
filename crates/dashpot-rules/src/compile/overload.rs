//! What a rule says about times of stress.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{Algorithm, Band, Class, Clock, Consistency, FactorSettings, Gate, Percent};

use super::{Compiler, set};
use crate::adaptive::{Adaptive, AdaptiveSettings};
use crate::capacity::Capacity;
use crate::config::{AdaptiveSection, BandText, CapacitySection, ClassesSection, RuleSection};
use crate::rule::{Classes, Tier};
use crate::source::{Span, Written};

/// Ticks shorter than this would tell nothing, and longer ones nothing in time.
const TICKS: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(60)];

/// The most that may be in or wait.
const MOST: u64 = 1_000_000;

impl Compiler<'_> {
    /// The factor, and by which settings it is found.
    pub(super) fn adaptive(
        &mut self,
        section: &RuleSection,
        tiers: &[Tier],
        clock: &Arc<dyn Clock>,
    ) -> Option<(AdaptiveSettings, Arc<Adaptive>)> {
        let Written { value: written, span } = section.adaptive.as_ref()?;
        let AdaptiveSection { cpu, errors, latency, floor, down, up, tick, .. } = written;
        let mut factor = FactorSettings::default();
        self.part(floor.as_ref(), "a floor", [Percent::new(1), Percent::WHOLE]);
        set(&mut factor.floor, floor.as_ref());
        self.part(down.as_ref(), "a step down", [Percent::new(1), Percent::new(99)]);
        set(&mut factor.down, down.as_ref());
        self.part(up.as_ref(), "a step up", [Percent::new(101), Percent::of(10, 1)]);
        set(&mut factor.up, up.as_ref());
        self.between(tick.as_ref(), "a tick", TICKS);
        factor.cpu = self.band(cpu.as_ref(), factor.cpu, &factor, span);
        factor.errors = self.band(errors.as_ref(), factor.errors, &factor, span);
        if latency.is_none() {
            factor.slow = None;
        }
        if factor.slow.is_some_and(|slow| factor.fits(slow).is_err()) {
            let message =
                "with these steps a twentieth of slow requests and a tenth are one step apart";
            self.error_with(span, message, "write smaller steps: `down` nearer to 100%, `up` too");
        }
        let limits = || tiers.iter().flat_map(|tier| &tier.limits);
        if limits().any(|limit| limit.consistency != Consistency::Exact) {
            let message = "units that are taken in advance are taken of the whole limit; leave out `consistency` or `adaptive`";
            self.error(span, message);
        }
        let settings = AdaptiveSettings {
            factor,
            latency: latency.as_ref().map(|latency| latency.value),
            tick: tick.as_ref().map_or(Duration::from_secs(1), |tick| tick.value),
        };
        let adaptive = Adaptive::new(settings.clone(), clock.clone());
        Some((settings, Arc::new(adaptive)))
    }

    fn band(
        &mut self,
        written: Option<&Written<BandText>>,
        usual: Option<Band>,
        factor: &FactorSettings,
        whole: &Span,
    ) -> Option<Band> {
        let (band, span) = match written {
            Some(Written { value: BandText(band), span }) => (*band, span),
            None => (usual, whole),
        };
        if let Some(band) = band {
            if band.healthy == Percent::default() || band.stressed >= Percent::WHOLE {
                let message = "nothing is below 0% or above 100%: the factor would never come back, or never fall";
                self.error(span, message);
            } else if let Err(narrow) = factor.fits(band) {
                self.error(span, narrow.to_string());
            }
        }
        band
    }

    fn part(
        &mut self,
        written: Option<&Written<Percent>>,
        what: &str,
        [least, most]: [Percent; 2],
    ) {
        if let Some(part) = written.filter(|part| !(least..=most).contains(&part.value)) {
            self.error(&part.span, format!("{what} is between {least} and {most}"));
        }
    }

    /// How much of a limit each class may fill.
    pub(super) fn classes(&mut self, section: &RuleSection, tiers: &[Tier]) -> Option<Classes> {
        let Written { value: written, span } = section.classes.as_ref()?;
        let ClassesSection { normal, background, .. } = written;
        for part in [normal, background].into_iter().flatten() {
            self.part(Some(part), "what a class may fill", [Percent::new(1), Percent::WHOLE]);
            if part.value.hundredths() % 100 != 0 {
                self.error(&part.span, "what a class may fill is told in whole percents");
            }
        }
        if normal.is_none() && background.is_none() && written.misread.is_empty() {
            let hint = "write classes = { normal = \"80%\", background = \"50%\" }";
            self.error_with(span, "no class is named here", hint);
        }
        // Who is not named may fill as much as the next more important class.
        let percent = |part: &Option<Written<Percent>>, above| {
            part.as_ref().map_or(above, |part| part.value.whole_percents())
        };
        let normal = percent(normal, 100);
        let classes = Classes { normal, background: percent(background, normal) };
        if classes.background > classes.normal {
            let span = background.as_ref().map_or(span, |part| &part.span);
            self.error(span, "what is background may not fill more than what is normal");
        }
        let is_permit =
            |tier: &Tier| tier.limits.iter().all(|limit| limit.algorithm == Algorithm::Concurrency);
        if section.capacity.is_none() && !tiers.iter().all(is_permit) {
            let message = "classes share what is in flight: they go with `concurrent` limits, and with `capacity`";
            self.error(span, message);
        }
        Some(classes)
    }

    /// How many requests this process takes at once.
    pub(super) fn capacity(
        &mut self,
        section: &RuleSection,
        classes: Option<Classes>,
        clock: &Arc<dyn Clock>,
    ) -> Option<Capacity> {
        let Written { value: written, .. } = section.capacity.as_ref()?;
        self.only_capacity(section);
        let CapacitySection { limit, latency, errors, min, max, tick, places, wait, .. } = written;
        let limit = limit.as_ref()?;
        if limit.value == 0 {
            self.error(&limit.span, "a capacity of 0 serves nobody");
        }
        for count in [Some(limit), max.as_ref(), places.as_ref()].into_iter().flatten() {
            if count.value > MOST {
                self.error(
                    &count.span,
                    format!("at most {MOST}: they are all in the memory of this process"),
                );
            }
        }
        if latency.is_none() {
            let others = [
                ("errors", errors.as_ref().map(|one| &one.span)),
                ("min", min.as_ref().map(|one| &one.span)),
                ("max", max.as_ref().map(|one| &one.span)),
                ("tick", tick.as_ref().map(|one| &one.span)),
            ];
            for (key, span) in others {
                if let Some(span) = span {
                    let message = format!("`{key}` is for a limit that adapts");
                    self.error_with(span, message, "say `latency`, as in latency = \"250ms\"");
                }
            }
        }
        self.between(tick.as_ref(), "a tick", TICKS);
        self.part(errors.as_ref(), "a part", [Percent::default(), Percent::WHOLE]);
        let mut gate = Gate::builder(limit.value);
        let (least, most) =
            (min.as_ref().map_or(1, |one| one.value), max.as_ref().map(|one| one.value));
        if let Some(min) = min.as_ref().filter(|min| min.value == 0 || min.value > limit.value) {
            self.error(&min.span, "the least is between 1 and `limit`");
        }
        if let Some(max) = max.as_ref().filter(|max| max.value < limit.value) {
            self.error(&max.span, "the most is no less than `limit`");
        }
        gate = gate.min(least);
        if let Some(most) = most {
            gate = gate.max(most);
        }
        if let Some(latency) = latency {
            gate = gate.latency(latency.value);
        }
        if let Some(errors) = errors {
            gate = gate.errors(errors.value);
        }
        if let Some(tick) = tick {
            gate = gate.tick(tick.value);
        }
        if let Some(places) = places {
            gate = gate.places(places.value);
        }
        if let Some(wait) = wait {
            gate = gate.wait(wait.value);
        }
        let classes = classes.unwrap_or_default();
        for class in Class::ALL {
            gate = gate.part(class, Percent::new(classes.percent(class)));
        }
        Some(Capacity::new(gate, clock.clone()))
    }

    /// What says whom a limit is about, and how it counts, has nothing to say about a capacity.
    fn only_capacity(&mut self, section: &RuleSection) {
        fn span<T>(written: &Option<Written<T>>) -> Option<&Span> {
            written.as_ref().map(|written| &written.span)
        }
        let others = [
            ("by", span(&section.by)),
            ("limits", span(&section.limits)),
            ("tiers", span(&section.tiers)),
            ("algorithm", span(&section.algorithm)),
            ("consistency", span(&section.consistency)),
            ("adaptive", span(&section.adaptive)),
            ("queue", span(&section.queue)),
            ("undelayed", span(&section.undelayed)),
            ("zone", span(&section.zone)),
            ("cost", span(&section.cost)),
            ("settle", span(&section.settle)),
            ("charge_on", span(&section.charge_on)),
            ("enforce_percent", span(&section.enforce_percent)),
            ("on_store_error", span(&section.on_store_error)),
            ("absent", span(&section.absent)),
        ];
        for (key, span) in others {
            if let Some(span) = span {
                let message = format!(
                    "`{key}` does not go with `capacity`, which is this process's and not a caller's"
                );
                self.error_with(span, message, "write a rule of its own for it");
            }
        }
    }
}
