//! A gate whose limit stays, as slow and plain as it can be.

use std::time::Duration;

use dashpot::{Class, Percent, Shed, Timestamp};

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) limit: u64,
    /// What normal and background requests may fill of it; the second is not more than the first.
    pub(crate) normal: u8,
    pub(crate) background: u8,
    pub(crate) places: usize,
    pub(crate) wait: Duration,
}

impl Settings {
    /// How many may be in for one of this class to come in, itself included.
    pub(crate) fn most(&self, class: Class) -> u64 {
        let part = match class {
            Class::Critical => 100,
            Class::Normal => self.normal,
            Class::Background => self.background,
        };
        Percent::new(part).part_of(self.limit).max(1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    who: usize,
    class: Class,
    until: Timestamp,
}

pub(crate) struct Model {
    pub(crate) settings: Settings,
    pub(crate) now: Timestamp,
    pub(crate) inside: Vec<usize>,
    /// In the order in which they came.
    line: Vec<Waiter>,
    /// Who is in or was turned away, and nobody was told so far.
    pub(crate) news: Vec<(usize, Result<(), Shed>)>,
}

impl Model {
    pub(crate) fn new(settings: Settings, now: Timestamp) -> Self {
        Self { settings, now, inside: Vec::new(), line: Vec::new(), news: Vec::new() }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.line.len()
    }

    pub(crate) fn has_room(&self, class: Class) -> bool {
        (self.inside.len() as u64) < self.settings.most(class)
    }

    /// Whether one of this class would come in at once.
    fn may_enter(&self, class: Class) -> bool {
        self.has_room(class) && self.line.iter().all(|one| one.class < class)
    }

    /// The newest of the lowest class, if that is lower than this one.
    fn displaceable(&self, class: Class) -> Option<usize> {
        let lowest =
            self.line.iter().map(|one| one.class).min().filter(|lowest| *lowest < class)?;
        self.line.iter().rposition(|one| one.class == lowest)
    }

    pub(crate) fn is_closed_to(&self, class: Class) -> bool {
        let place = self.line.len() < self.settings.places || self.displaceable(class).is_some();
        !self.may_enter(class) && !place
    }

    pub(crate) fn try_enter(&mut self, who: usize, class: Class) -> bool {
        let enters = self.may_enter(class);
        if enters {
            self.inside.push(who);
        }
        enters
    }

    /// Somebody looks for the first time, who may wait until then.
    pub(crate) fn enter(&mut self, who: usize, class: Class, until: Timestamp) {
        if self.try_enter(who, class) {
            return self.news.push((who, Ok(())));
        }
        let (full, displaced) = (self.line.len() >= self.settings.places, self.displaceable(class));
        if full && displaced.is_none() {
            return self.news.push((who, Err(Shed::Full)));
        }
        // Who comes to look so late takes nobody's place.
        if until <= self.now {
            return self.news.push((who, Err(Shed::TooLate)));
        }
        if full && let Some(place) = displaced {
            let displaced = self.line.remove(place);
            self.news.push((displaced.who, Err(Shed::Displaced)));
        }
        self.line.push(Waiter { who, class, until });
    }

    /// Somebody goes away, from inside or from the line.
    pub(crate) fn leave(&mut self, who: usize) {
        self.inside.retain(|one| *one != who);
        self.line.retain(|one| one.who != who);
    }

    /// Who has waited for long enough leaves; whose turn it is comes in.
    pub(crate) fn settle(&mut self) {
        let now = self.now;
        for late in self.line.extract_if(.., |one| one.until <= now) {
            self.news.push((late.who, Err(Shed::TooLate)));
        }
        while let Some(highest) = self.line.iter().map(|one| one.class).max()
            && self.has_room(highest)
        {
            let first = self.line.iter().position(|one| one.class == highest);
            let first = self.line.remove(first.expect("there is one"));
            self.inside.push(first.who);
            self.news.push((first.who, Ok(())));
        }
    }
}
