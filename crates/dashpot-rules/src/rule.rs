//! What a rule means.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use dashpot::{
    Algorithm, Class, Consistency, Cost, Gate, KeyBuf, Policy, PolicyError, Quota, Zone,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::adaptive::{Adaptive, AdaptiveSettings};
use crate::capacity::Capacity;
use crate::matching::{Condition, PathPattern};
use crate::secret::shown;
use crate::share::Policies;
use crate::tally::Tally;
use crate::weight::Weight;
use crate::{Descriptor, Fact, OnDeny};

/// What to do with a rule when the store cannot answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnStoreError {
    /// Let requests pass.
    Allow,
    /// Refuse them.
    Deny,
    /// Limit them by what this process has counted itself.
    #[default]
    Local,
}

/// What to do with requests that lack a fact the rule counts by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Absent {
    /// They share one counter: a missing fact opens no hole.
    #[default]
    Share,
    /// The rule does not apply to them.
    Skip,
    /// They are refused.
    Deny,
}

/// When what a rule charged is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settle {
    /// It is not.
    Never,
    /// When the response says what it cost in this header.
    Header(String),
    /// When the response was sent: by the bytes of its body.
    Bytes,
    /// When the response has one of these statuses it stays charged, else it is given back.
    ChargeOn(Vec<u16>),
    /// When the response was sent: a permit.
    Release,
}

impl Settle {
    /// What was used by a request that was answered with this status; nothing if the status does not say.
    #[must_use]
    pub fn by_status(&self, status: u16) -> Option<Cost> {
        match self {
            Self::ChargeOn(statuses) if !statuses.contains(&status) => Some(Cost::PEEK),
            _ => None,
        }
    }
}

/// Whom a rule is enforced for. For the others it only counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enforced {
    Always,
    /// So many of a hundred keys.
    Percent(u64),
    Never,
}

/// Which limits apply to which requests, and by what they are counted.
#[derive(Debug)]
pub struct Rule {
    pub(crate) name: String,
    /// Its place among the others.
    pub(crate) number: usize,
    pub(crate) condition: Condition,
    pub(crate) by: Vec<Vec<Named>>,
    /// Whether the body has to be read to cut its keys.
    pub(crate) needs_body: bool,
    pub(crate) tiers: Vec<Tier>,
    pub(crate) cost: Cost,
    pub(crate) settle: Settle,
    pub(crate) enforced: Enforced,
    pub(crate) on_store_error: OnStoreError,
    pub(crate) absent: Absent,
    pub(crate) on_deny: Option<OnDeny>,
    pub(crate) adaptive: Option<(AdaptiveSettings, Arc<Adaptive>)>,
    pub(crate) classes: Option<Classes>,
    pub(crate) capacity: Option<Capacity>,
    pub(crate) tally: Arc<Tally>,
}

/// How much of a limit each class may fill, in percent. What is critical may fill it all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) normal: u8,
    pub(crate) background: u8,
}

impl Default for Classes {
    fn default() -> Self {
        Self { normal: 100, background: 100 }
    }
}

impl Classes {
    pub(crate) const fn percent(self, class: Class) -> u8 {
        match class {
            Class::Critical => 100,
            Class::Normal => self.normal,
            Class::Background => self.background,
        }
    }
}

/// A fact, and its name as keys have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) fact: Fact,
    pub(crate) name: String,
    is_secret: bool,
}

impl Named {
    pub(crate) fn new(fact: &Fact) -> Self {
        Self { fact: fact.clone(), name: fact.to_string(), is_secret: fact.is_secret() }
    }
}

/// What a tier is allowed.
#[derive(Debug)]
pub(crate) struct Tier {
    /// `None` is for everybody.
    pub(crate) name: Option<String>,
    pub(crate) policies: Policies,
    pub(crate) limits: Vec<Limit>,
    /// The same with the weight of each priority, made when it is first asked for: most never are.
    pub(crate) weighted: Vec<OnceLock<Policies>>,
}

impl Tier {
    /// Its policies, with the weight of this priority.
    pub(crate) fn policies(&self, priority: Option<&Priority>) -> &Policies {
        let Some(priority) = priority.filter(|priority| priority.weight.is_some()) else {
            return &self.policies;
        };
        let Some(weighted) = self.weighted.get(priority.number) else { return &self.policies };
        weighted.get_or_init(|| {
            // What cannot be built with this weight is found when the file is read.
            self.limits.iter().filter_map(|limit| limit.weighed(priority).build().ok()).collect()
        })
    }
}

impl Rule {
    /// A rule that no request matches by itself: for limits that something else than a rule file finds. `tally` goes on
    /// with what was counted about it.
    #[must_use]
    pub fn detached(
        name: impl Into<String>,
        policy: Policy,
        shadow: bool,
        on_store_error: OnStoreError,
        tally: Arc<Tally>,
    ) -> Self {
        let policies = Policies::from_iter([policy]);
        Self {
            name: name.into(),
            number: 0,
            condition: Condition::default(),
            by: Vec::new(),
            needs_body: false,
            tiers: vec![Tier { name: None, policies, limits: Vec::new(), weighted: Vec::new() }],
            cost: Cost::ONE,
            settle: Settle::Never,
            enforced: if shadow { Enforced::Never } else { Enforced::Always },
            on_store_error,
            absent: Absent::Share,
            on_deny: None,
            adaptive: None,
            classes: None,
            capacity: None,
            tally,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What to answer instead of the usual 429.
    #[must_use]
    pub const fn on_deny(&self) -> Option<&OnDeny> {
        self.on_deny.as_ref()
    }

    /// What it adapts by, if it does.
    #[must_use]
    pub fn adaptive(&self) -> Option<&Arc<Adaptive>> {
        self.adaptive.as_ref().map(|(_, adaptive)| adaptive)
    }

    /// The gate of a rule with `capacity`.
    #[must_use]
    pub fn gate(&self) -> Option<&Gate> {
        self.capacity.as_ref().map(|capacity| &capacity.gate)
    }

    /// Whether it is about what the service can take, and not about what a caller may: it has `capacity` or `classes`.
    #[must_use]
    pub const fn is_about_the_service(&self) -> bool {
        self.capacity.is_some() || self.classes.is_some()
    }

    /// Goes on where one of the same name was.
    pub(crate) fn succeed(&mut self, before: &Self) {
        self.tally = before.tally.clone();
        if let (Some((settings, adaptive)), Some((_, known))) =
            (&mut self.adaptive, &before.adaptive)
        {
            known.adjust(settings.clone());
            *adaptive = known.clone();
        }
        if let (Some(capacity), Some(known)) = (&mut self.capacity, &before.capacity) {
            capacity.succeed(known);
        }
    }

    /// How much of its limits there is for a class, in percent.
    pub(crate) fn percent(&self, class: Class) -> u8 {
        let factor = self.adaptive().map_or(100, |adaptive| adaptive.percent());
        let part = self.classes.map_or(100, |classes| classes.percent(class));
        let both = u16::from(factor) * u16::from(part) / 100;
        u8::try_from(both).unwrap_or(100).max(1)
    }

    /// How many units a request costs.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// When what it charged is settled.
    #[must_use]
    pub const fn settle(&self) -> &Settle {
        &self.settle
    }

    /// What came of it.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The facts it counts by.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.by.iter().flatten().map(|named| &named.fact)
    }

    /// All its policies, of all tiers.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.tiers.iter().flat_map(|tier| tier.policies.iter())
    }

    pub(crate) fn has_tiers(&self) -> bool {
        self.tiers.first().is_some_and(|tier| tier.name.is_some())
    }

    /// This tier, or the default one.
    pub(crate) fn tier(&self, tier: Option<&[u8]>, default_tier: Option<&str>) -> Option<&Tier> {
        let find = |name: &[u8]| {
            self.tiers.iter().find(|tier| tier.name.as_ref().is_some_and(|n| n.as_bytes() == name))
        };
        let found = tier.and_then(find).or_else(|| find(default_tier?.as_bytes()));
        // Everybody's; or a tier nobody has heard of, which is the first there is.
        found.or_else(|| self.tiers.first())
    }

    /// Cuts the key, and says what becomes of a request that lacks a fact.
    pub(crate) fn cut(&self, request: &impl Descriptor, path: &str, key: &mut KeyBuf) -> Cut {
        let (mut whole, mut knows_whom) = (true, false);
        for alternatives in &self.by {
            let found = alternatives
                .iter()
                .find_map(|named| self.value(&named.fact, request, path).map(|v| (named, v)));
            match found {
                Some((named, value)) => {
                    knows_whom |= matches!(named.fact, Fact::User | Fact::ApiKey);
                    key.push(&named.name).push(shown(named.is_secret, value));
                }
                None => {
                    // No fact has no name.
                    key.push("").push("");
                    whole = false;
                }
            }
        }
        match self.absent {
            _ if whole => Cut::Whole(knows_whom),
            Absent::Share => Cut::Shared(knows_whom),
            Absent::Skip => Cut::Skip,
            Absent::Deny => Cut::Deny,
        }
    }

    fn value<'d>(
        &self,
        fact: &Fact,
        request: &'d impl Descriptor,
        path: &'d str,
    ) -> Option<Cow<'d, [u8]>> {
        match fact {
            Fact::Path => Some(Cow::Borrowed(path.as_bytes())),
            Fact::Param(name) => {
                let param = |pattern: &PathPattern| pattern.param(name, path);
                let found = self.condition.paths.iter().find_map(param);
                found.map(|value| Cow::Borrowed(value.as_bytes()))
            }
            _ => request.fact(fact),
        }
    }

    /// Whether it is enforced for this key. The same keys are chosen everywhere.
    pub(crate) fn is_enforced(&self, key: &[u8]) -> bool {
        match self.enforced {
            Enforced::Always => true,
            Enforced::Never => false,
            Enforced::Percent(percent) => {
                let seed = xxh3_64_with_seed(self.name.as_bytes(), 0);
                xxh3_64_with_seed(key, seed) % 100 < percent
            }
        }
    }
}

/// What came of cutting a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Every fact is there; whether one of them says who it is.
    Whole(bool),
    /// Something is missing, and shared with all who miss it.
    Shared(bool),
    /// The rule does not apply.
    Skip,
    /// The request is refused.
    Deny,
}

/// Requests that weigh more or less than others.
#[derive(Debug)]
pub(crate) struct Priority {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) condition: Condition,
    /// Without one, limits are everybody's.
    pub(crate) weight: Option<Weight>,
    pub(crate) class: Class,
    pub(crate) tally: Arc<Tally>,
}

impl Priority {
    pub(crate) fn is_unlimited(&self) -> bool {
        self.weight == Some(Weight::Unlimited)
    }

    /// `weight 10`, `class critical`, or both.
    pub(crate) fn summary(&self) -> String {
        let weight = self.weight.map(|weight| format!("weight {weight}"));
        let class = (self.class != Class::Normal).then(|| format!("class {}", self.class));
        let items: Vec<String> = weight.into_iter().chain(class).collect();
        if items.is_empty() { format!("class {}", self.class) } else { items.join(", ") }
    }
}

/// A limit on its way to being a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) name: String,
    pub(crate) quota: Quota,
    pub(crate) algorithm: Algorithm,
    pub(crate) queue: Option<u64>,
    pub(crate) undelayed: Option<u64>,
    pub(crate) zone: Zone,
    pub(crate) consistency: Consistency,
}

impl Limit {
    pub(crate) fn build(&self) -> Result<Policy, PolicyError> {
        let mut builder = Policy::builder(&self.name, self.quota)
            .algorithm(self.algorithm)
            .zone(self.zone.clone())
            .consistency(self.consistency);
        if let Some(places) = self.queue {
            builder = builder.queue(places);
        }
        if let Some(places) = self.undelayed {
            builder = builder.undelayed(places);
        }
        builder.build()
    }

    /// The same with the weight of a priority, and counters of its own.
    pub(crate) fn weighed(&self, priority: &Priority) -> Self {
        let Some(weight) = priority.weight else { return self.clone() };
        Self {
            name: format!("{}@{}", self.name, priority.name),
            quota: weight.of(self.quota),
            queue: self.queue.map(|places| weight.scale(places)),
            undelayed: self.undelayed.map(|places| weight.scale(places)),
            ..self.clone()
        }
    }
}
