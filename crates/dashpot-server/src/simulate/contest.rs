//! Traffic against several limits, each by several algorithms.

use std::str::FromStr;
use std::time::Duration;

use dashpot::{Algorithm, Policy, PolicyError, Quota};
use dashpot_simulate::{Arrival, Csv, Setting, Traffic, Unaimed, run_with, together};

use crate::simulate::told::Simulated;

/// What most policies are, when all are wanted.
const ALL: [Algorithm; 5] = [
    Algorithm::FixedWindow,
    Algorithm::SlidingWindow,
    Algorithm::SlidingLog,
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
];

/// How many windows are simulated, if nobody says how much time.
const WINDOWS: u32 = 4;

/// An algorithm, or all that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    All,
    One(Algorithm),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let one = text.parse().map(Self::One);
        one.map_err(|error: dashpot::ParseAlgorithmError| format!("{error}; or `all`"))
    }
}

/// What is simulated.
#[derive(Clone, Debug)]
pub(crate) struct Contest {
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) limits: Vec<Quota>,
    /// What a limit is if nobody says: none.
    pub(crate) algorithms: Vec<Choice>,
    pub(crate) queue: Option<u64>,
    pub(crate) undelayed: Option<u64>,
    pub(crate) length: Option<Duration>,
    pub(crate) takes: Duration,
    pub(crate) seed: u64,
}

/// The same, and nothing about it is wrong.
pub(crate) struct Ready {
    traffic: Vec<Traffic>,
    csv: Option<Csv>,
    policies: Vec<Policy>,
    left_out: Vec<String>,
    setting: Setting,
}

impl Contest {
    /// Fails if something is wrong, and says what.
    pub(crate) fn ready(&self, csv: Option<Csv>) -> Result<Ready, String> {
        let (policies, left_out) = self.policies()?;
        let by_window = self.limits.iter().copied().find(|limit| limit.window().is_some());
        let traffic: Vec<Traffic> = { self.traffic.iter() }
            .map(|traffic| by_window.map_or(*traffic, |limit| traffic.aimed_at(limit)))
            .collect();
        let setting = Setting {
            length: self.length.unwrap_or_else(|| self.usual_length()),
            takes: self.takes,
            seed: self.seed,
        };
        // Nothing else can be wrong with traffic that could be read.
        if csv.is_none() && traffic.contains(&Traffic::Boundary(None)) {
            return Err(Unaimed.to_string());
        }
        Ok(Ready { traffic, csv, policies, left_out, setting })
    }

    /// Four of the longest window.
    fn usual_length(&self) -> Duration {
        let windows = self.limits.iter().filter_map(|limit| limit.window());
        let longest = windows.map(|window| window.length()).max();
        longest.map_or(Setting::default().length, |longest| longest.saturating_mul(WINDOWS))
    }

    /// Each limit by each algorithm; and which of them cannot be, if all were wanted.
    fn policies(&self) -> Result<(Vec<Policy>, Vec<String>), String> {
        let (mut policies, mut left_out) = (Vec::new(), Vec::new());
        for limit in &self.limits {
            if self.algorithms.is_empty() {
                policies.push(
                    self.policy(*limit, None, self.queue).map_err(|error| wrong(limit, &error))?,
                );
            }
            for choice in &self.algorithms {
                let Choice::One(algorithm) = choice else {
                    self.all(*limit, &mut policies, &mut left_out);
                    continue;
                };
                let made = self.policy(*limit, Some(*algorithm), self.queue);
                policies.push(made.map_err(|error| wrong(limit, &error))?);
            }
        }
        match (&*policies, left_out.first()) {
            ([], Some(why)) => Err(why.clone()),
            ([], None) => Err("there is no limit to simulate".to_owned()),
            _ => Ok((policies, left_out)),
        }
    }

    fn all(&self, limit: Quota, policies: &mut Vec<Policy>, left_out: &mut Vec<String>) {
        if limit.is_concurrent() || limit.is_unlimited() {
            policies.extend(self.policy(limit, None, None));
            return;
        }
        for algorithm in ALL {
            // Without a queue it is a token bucket by another name. This long, it grants as much as one.
            let queue = self.queue.unwrap_or_else(|| limit.capacity().saturating_sub(1));
            match self.policy(limit, Some(algorithm), Some(queue)) {
                Ok(policy) => policies.push(policy),
                Err(error) => left_out.push(format!("{algorithm} with {}", wrong(&limit, &error))),
            }
        }
    }

    fn policy(
        &self,
        limit: Quota,
        algorithm: Option<Algorithm>,
        queue: Option<u64>,
    ) -> Result<Policy, PolicyError> {
        let mut policy = Policy::builder("simulated", limit);
        if let Some(algorithm) = algorithm {
            policy = policy.algorithm(algorithm);
        }
        // Others have none, whatever is said for this one.
        if algorithm == Some(Algorithm::LeakyBucket) {
            if let Some(places) = queue {
                // A queue says how long the burst is.
                let without =
                    limit.window().map(|window| Quota::new(limit.count().unwrap_or(0), window));
                policy = Policy::builder("simulated", without.unwrap_or(limit))
                    .algorithm(Algorithm::LeakyBucket)
                    .queue(places);
            }
            if let Some(places) = self.undelayed {
                policy = policy.undelayed(places);
            }
        }
        policy.build()
    }
}

fn wrong(limit: &Quota, error: &PolicyError) -> String {
    format!("{limit}: {error}")
}

impl Ready {
    /// About how many arrivals there are to decide.
    pub(crate) fn expected(&self) -> f64 {
        let each = match &self.csv {
            Some(csv) => csv.arrivals.len() as f64,
            None => self.traffic.iter().map(|one| one.expected(self.setting.length)).sum(),
        };
        each * self.policies.len() as f64
    }

    /// How far it is from the beginning to the end, in milliseconds of simulated time.
    pub(super) fn steps(&self) -> u64 {
        millis(self.setting.length).saturating_mul(self.policies.len() as u64)
    }

    /// Runs all, and tells how far it is.
    pub(crate) fn run(&self, mut at: impl FnMut(u64)) -> Simulated {
        let whole = millis(self.setting.length);
        let runs = self.policies.iter().zip(0_u64..).map(|(policy, number)| {
            let before = whole.saturating_mul(number);
            run_with(policy, self.arrivals(), &self.setting, |passed| {
                at(before.saturating_add(millis(passed)));
            })
        });
        let runs = runs.collect();
        Simulated::new(self.title(), runs, self.left_out.clone())
    }

    fn arrivals(&self) -> Box<dyn Iterator<Item = Arrival> + '_> {
        if let Some(csv) = &self.csv {
            return Box::new(csv.arrivals.iter().copied());
        }
        // Whether they can be made was seen before.
        let made = self.traffic.iter().filter_map(|one| one.arrivals(&self.setting).ok());
        together(made.map(|one| -> Box<dyn Iterator<Item = Arrival>> { one }).collect())
    }

    fn title(&self) -> String {
        let names: Vec<String> = self.traffic.iter().map(ToString::to_string).collect();
        if self.csv.is_some() { "Arrivals out of a file".to_owned() } else { names.join(", ") }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
