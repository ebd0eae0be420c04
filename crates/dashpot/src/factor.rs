//! How much of a limit there is while a service suffers: a factor that falls fast enough and comes back slowly.

use crate::Percent;

/// How a service is doing. What is not known is `None`, and counts as healthy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// How busy the processors are.
    pub cpu: Option<Percent>,
    /// How many requests fail.
    pub errors: Option<Percent>,
    /// How many take too long.
    pub slow: Option<Percent>,
}

/// Below is healthy, above is stressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Less than this is healthy.
    pub healthy: Percent,
    /// More than this is stressed.
    pub stressed: Percent,
}

impl Band {
    /// From so much to so much.
    #[must_use]
    pub const fn new(healthy: Percent, stressed: Percent) -> Self {
        Self { healthy, stressed }
    }
}

/// By which rule a factor is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorSettings {
    /// How busy the processors may be, if that is looked at.
    pub cpu: Option<Band>,
    /// How many requests may fail, if that is looked at.
    pub errors: Option<Band>,
    /// How many may take too long, if that is looked at.
    pub slow: Option<Band>,
    /// The least it becomes.
    pub floor: Percent,
    /// What it is multiplied by under stress.
    pub down: Percent,
    /// What it is multiplied by in health.
    pub up: Percent,
}

/// Down by a tenth if the processors are busier than 80 % or more than 5 % of requests fail, to no less than half; up by a tenth if they are less
/// busy than 50 % and fewer than 1 % fail. How many take too long is looked at from 5 % to 10 %, if somebody tells.
impl Default for FactorSettings {
    fn default() -> Self {
        Self {
            cpu: Some(Band::new(Percent::new(50), Percent::new(80))),
            errors: Some(Band::new(Percent::new(1), Percent::new(5))),
            slow: Some(Band::new(Percent::new(5), Percent::new(10))),
            floor: Percent::new(50),
            down: Percent::new(90),
            up: Percent::new(110),
        }
    }
}

/// A band in which a factor would swing: one step leads out of it on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a band has room for a step: its upper end times `down` is above its lower end times `up`, or the factor would swing"
)]
pub struct NarrowBand;

impl FactorSettings {
    /// Sees that a band has room for a step up and a step down: if load follows the factor, it stays in between then.
    ///
    /// # Errors
    /// If it has not.
    pub fn fits(&self, band: Band) -> Result<(), NarrowBand> {
        let end = |end: Percent, step: Percent| {
            u64::from(end.hundredths()) * u64::from(step.hundredths())
        };
        if end(band.stressed, self.down) > end(band.healthy, self.up) {
            Ok(())
        } else {
            Err(NarrowBand)
        }
    }
}

/// How much of a limit there is, for now.
///
/// ```
/// use dashpot::{Factor, FactorSettings, Percent, Vitals};
///
/// let mut factor = Factor::new(FactorSettings::default());
/// let busy = Vitals { cpu: Some(Percent::new(95)), ..Vitals::default() };
/// factor.tick(&busy);
/// assert_eq!(factor.percent(), 90);
/// factor.tick(&busy);
/// assert_eq!(factor.percent(), 81);
/// factor.tick(&Vitals::default());
/// assert_eq!(factor.percent(), 89);
/// ```
#[derive(Clone, Debug)]
pub struct Factor {
    settings: FactorSettings,
    /// In millionths.
    value: u64,
}

const ONE: u64 = 1_000_000;

impl Factor {
    /// All of it, to begin with.
    #[must_use]
    pub const fn new(settings: FactorSettings) -> Self {
        Self { settings, value: ONE }
    }

    /// Takes one step, by how the service is doing.
    pub fn tick(&mut self, vitals: &Vitals) {
        self.value = if self.is_stressed(vitals) {
            self.stepped(self.settings.down).min(self.value)
        } else if self.is_healthy(vitals) {
            self.stepped(self.settings.up).max(self.value)
        } else {
            self.value
        };
        self.bound();
    }

    /// Goes on by other settings.
    pub fn adjust(&mut self, settings: FactorSettings) {
        self.settings = settings;
        self.bound();
    }

    /// In whole percents, rounded down: 1 to 100.
    #[must_use]
    pub fn percent(&self) -> u8 {
        u8::try_from(self.value * 100 / ONE).unwrap_or(100).clamp(1, 100)
    }

    fn stepped(&self, step: Percent) -> u64 {
        self.value * u64::from(step.hundredths()) / u64::from(Percent::WHOLE.hundredths())
    }

    fn bound(&mut self) {
        let floor = self.settings.floor.part_of(ONE).clamp(1, ONE);
        self.value = self.value.clamp(floor, ONE);
    }

    /// What is looked at, and known.
    fn known(&self, vitals: &Vitals) -> impl Iterator<Item = (Percent, Band)> {
        let FactorSettings { cpu, errors, slow, .. } = self.settings;
        let all = [vitals.cpu.zip(cpu), vitals.errors.zip(errors), vitals.slow.zip(slow)];
        all.into_iter().flatten()
    }

    fn is_stressed(&self, vitals: &Vitals) -> bool {
        self.known(vitals).any(|(found, band)| found > band.stressed)
    }

    fn is_healthy(&self, vitals: &Vitals) -> bool {
        self.known(vitals).all(|(found, band)| found < band.healthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vitals(cpu: u8, errors: u8) -> Vitals {
        Vitals { cpu: Some(Percent::new(cpu)), errors: Some(Percent::new(errors)), slow: None }
    }

    /// The rule of which it is said: busier than 0.8 or more than 5 % failing is stress, less than 0.5 and fewer than 1 % health.
    #[test]
    fn the_usual_rule() {
        let mut factor = Factor::new(FactorSettings::default());
        let mut after = |cpu, errors| {
            factor.tick(&vitals(cpu, errors));
            factor.percent()
        };
        assert_eq!([after(81, 0), after(10, 6), after(80, 5), after(49, 1)], [90, 81, 81, 81]);
        assert_eq!([after(50, 0), after(49, 0), after(49, 0), after(49, 0)], [81, 89, 98, 100]);
        let down: Vec<u8> = (0..9).map(|_| after(100, 0)).collect();
        assert_eq!(down, [90, 81, 72, 65, 59, 53, 50, 50, 50]);
        let up: Vec<u8> = (0..9).map(|_| after(0, 0)).collect();
        assert_eq!(up, [55, 60, 66, 73, 80, 88, 97, 100, 100]);
    }

    #[test]
    fn a_band_without_room_for_a_step_is_refused() {
        let settings = FactorSettings::default();
        let band = |healthy, stressed| Band::new(Percent::new(healthy), Percent::new(stressed));
        assert_eq!(settings.fits(band(50, 80)), Ok(()));
        assert_eq!(settings.fits(band(66, 80)), Err(NarrowBand));
        assert_eq!(settings.fits(band(65, 80)), Ok(()));
        assert_eq!(settings.fits(band(80, 50)), Err(NarrowBand));
    }
}
