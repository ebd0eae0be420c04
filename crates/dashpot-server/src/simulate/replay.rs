//! A log against rules: what they would have denied.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::env;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dashpot::{ManualClock, MemoryStore, Percent, Reservation, Timestamp, Vitals};
use dashpot_http::HttpDescriptor;
use dashpot_rules::{Plan, Rule, RuleSet, Ruling, Settle, key_values};
use dashpot_simulate::Series;
use futures_util::FutureExt;

use super::log::{self, Entry};
use super::progress::Bar;
use super::replayed::{OfKey, OfRule, Replayed};
use super::{Args, usage};
use crate::Exit;
use crate::limit::as_file;
use crate::seconds::Seconds;
use crate::serve::common::USUAL_FILE;
use crate::serve::top::Top;
use crate::simulate::contest::Choice;

/// How many callers are told of.
const TOLD: usize = 10;

/// How many parts a picture has.
const PARTS: usize = 240;

const SECOND: u64 = 1_000_000_000;

/// How many requests of one second are kept to be spread over it.
const SECOND_MOST: usize = 65_536;

/// The rules: of a file, or those that flags make.
pub(super) fn rules(args: &Args) -> Result<RuleSet, Exit> {
    if args.limit.is_empty() {
        if !args.by.is_empty() || !args.algorithm.is_empty() || args.queue.is_some() {
            return Err(usage(
                "--by, --algorithm and --queue go with --limit; a rule file says them itself",
            ));
        }
        let named =
            args.config.clone().or_else(|| env::var_os("DASHPOT_CONFIG").map(PathBuf::from));
        let file = named.clone().unwrap_or_else(|| PathBuf::from(USUAL_FILE));
        if named.is_none() && !file.exists() {
            return Err(usage(
                "say which rules: --config dashpot.toml, or --limit 100/min --by ip",
            ));
        }
        let rules = RuleSet::load(&file).map_err(|error| usage(&error.to_string()))?;
        if rules.is_empty() {
            return Err(usage(&format!("{} has no rules", file.display())));
        }
        return Ok(rules);
    }
    let algorithm = match &*args.algorithm {
        [] => None,
        [Choice::One(one)] => Some(*one),
        _ => return Err(usage("with a log, say one --algorithm")),
    };
    let mut text = as_file(&args.limit, &args.by);
    if let Some(algorithm) = algorithm {
        text += &format!("algorithm = \"{algorithm}\"\n");
    }
    for (name, places) in [("queue", args.queue), ("undelayed", args.undelayed)] {
        text += &places.map(|places| format!("{name} = {places}\n")).unwrap_or_default();
    }
    RuleSet::parse(&text)
        .map_err(|errors| usage(&format!("--limit and what goes with it make no rule:\n{errors}")))
}

/// Asks the rules about each request of the logs, at its time.
pub(super) fn replay(
    rules: &RuleSet,
    logs: &[PathBuf],
    takes: Duration,
) -> Result<Replayed, String> {
    // How busy this machine is now says nothing about then.
    let none = Some(Percent::new(0));
    let calm = Vitals { cpu: none, errors: none, slow: none };
    let long = Duration::from_secs(365 * 86_400);
    rules.rules().iter().filter_map(Rule::adaptive).for_each(|adaptive| adaptive.push(calm, long));
    let mut replay = Replay::new(rules, takes);
    let size = |path: &PathBuf| path.metadata().map_or(0, |about| about.len());
    let bar = Bar::of(logs.iter().map(size).sum());
    let mut read = 0;
    for path in logs {
        let wrong = |error: io::Error| format!("{}: {error}", path.display());
        let from: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path).map_err(wrong)?),
        };
        log::lines(BufReader::with_capacity(1 << 16, from), |number, line, bytes| {
            read += bytes as u64;
            bar.at(read);
            replay.line(path, number, line);
        })
        .map_err(wrong)?;
    }
    bar.end();
    let replayed = replay.end();
    match (replayed.requests, &replayed.first_left_out) {
        (0, Some(why)) => Err(format!("no line is a request; {why}")),
        (0, None) => Err("there are no requests in it".to_owned()),
        _ => Ok(replayed),
    }
}

struct Replay<'r> {
    rules: &'r RuleSet,
    clock: ManualClock,
    store: MemoryStore,
    takes: Duration,
    /// Those who are served, until when.
    served: BinaryHeap<Reverse<(u64, u64)>>,
    permits: HashMap<u64, Vec<Reservation>>,
    /// Requests of one second, whose log does not tell which was when.
    second: Vec<Entry>,
    now: u64,
    from: Option<u64>,
    requests: u64,
    left_out: u64,
    first_left_out: Option<String>,
    denied: u64,
    delayed: u64,
    longest_delay: Duration,
    top: Top,
    series: Series,
}

impl<'r> Replay<'r> {
    fn new(rules: &'r RuleSet, takes: Duration) -> Self {
        let clock = ManualClock::new(Timestamp::from_nanos(0));
        Self {
            rules,
            store: MemoryStore::builder().clock(clock.clone()).max_keys(usize::MAX).build(),
            clock,
            takes,
            served: BinaryHeap::new(),
            permits: HashMap::new(),
            second: Vec::new(),
            now: 0,
            from: None,
            requests: 0,
            left_out: 0,
            first_left_out: None,
            denied: 0,
            delayed: 0,
            longest_delay: Duration::ZERO,
            top: Top::new(),
            series: Series::growing(PARTS),
        }
    }

    fn line(&mut self, path: &Path, number: u64, line: Option<&str>) {
        let read = match line {
            Some("") => return,
            Some(line) => log::read(line),
            None => Err("it is too long".to_owned()),
        };
        match read {
            Ok(entry) => self.entry(entry),
            Err(why) => self.leave_out(|| format!("{}:{number}: {why}", path.display())),
        }
    }

    fn leave_out(&mut self, why: impl FnOnce() -> String) {
        self.left_out += 1;
        self.first_left_out.get_or_insert_with(why);
    }

    /// Requests of the same second are spread over it: a log that tells no more does not mean that they came at once.
    fn entry(&mut self, entry: Entry) {
        if self.second.first().is_some_and(|first| first.at < entry.at) {
            self.ask_second();
        }
        if entry.at.is_multiple_of(SECOND) {
            self.second.push(entry);
            if self.second.len() >= SECOND_MOST {
                self.ask_second();
            }
            return;
        }
        self.ask(entry.at, &entry);
    }

    fn ask_second(&mut self) {
        let all = std::mem::take(&mut self.second);
        let many = (all.len() as u64).max(1);
        for (entry, number) in all.iter().zip(0_u64..) {
            self.ask(entry.at.saturating_add(number * (SECOND / many)), entry);
        }
    }

    fn ask(&mut self, at: u64, entry: &Entry) {
        let Ok((request, body)) = entry.request.build() else {
            return self.leave_out(|| "a request that HTTP does not know".to_owned());
        };
        // Logs are written when requests end, so they are not quite in order.
        self.now = self.now.max(at);
        self.requests += 1;
        let from = *self.from.get_or_insert(self.now);
        let since = self.now - from;
        self.give_back();
        self.clock.set(Timestamp::from_nanos(self.now));
        let rules = self.rules;
        let descriptor = HttpDescriptor::new(rules, &request, body.as_ref());
        let plan = rules.select(&descriptor).plan(&descriptor);
        let mut ruling = self.decide(&plan);
        if ruling.refusal().is_some() {
            self.denied += 1;
            for (rule, key) in plan.denied(&ruling) {
                self.top.count(rule.name(), key.as_bytes(), 1);
            }
            return self.series.deny(since, 1);
        }
        let delay = ruling.decision().map(dashpot::Decision::delay).unwrap_or_default();
        if !delay.is_zero() {
            self.delayed += 1;
            self.longest_delay = self.longest_delay.max(delay);
        }
        self.series.pass(since, 1);
        self.settle(&mut ruling, entry, delay);
    }

    fn decide(&self, plan: &Plan<'r>) -> Ruling<'r> {
        let mut ruling = Ruling::default();
        if !plan.decide_at_once(&self.store, &self.store, &mut ruling) {
            // In memory nothing is waited for.
            ruling = plan.decide(&self.store, &self.store).now_or_never().unwrap_or_default();
        }
        ruling
    }

    /// What was charged, less what the answer that was given then says.
    fn settle(&mut self, ruling: &mut Ruling<'r>, entry: &Entry, delay: Duration) {
        let mut held = Vec::new();
        for one in ruling.take_pending() {
            let used = match one.rule.settle() {
                Settle::Bytes => entry.bytes.map(dashpot::Cost::new),
                settle => entry.status.and_then(|status| settle.by_status(status)),
            };
            if let Some(used) = used {
                self.store.settle_now(&one.reservation, used);
            } else if one.reservation.is_permit() {
                held.push(one.reservation);
            }
        }
        if !held.is_empty() {
            let took = delay + entry.took.unwrap_or(self.takes);
            let until = Timestamp::from_nanos(self.now).after(took).as_nanos();
            self.served.push(Reverse((until, self.requests)));
            self.permits.insert(self.requests, held);
        }
    }

    /// Gives back the places of those who were served by now.
    fn give_back(&mut self) {
        while let Some(Reverse((until, number))) = self.served.peek().copied()
            && until <= self.now
        {
            self.served.pop();
            self.clock.set(Timestamp::from_nanos(until));
            for reservation in self.permits.remove(&number).unwrap_or_default() {
                let cost = reservation.cost();
                self.store.settle_now(&reservation, cost);
            }
        }
    }

    fn end(mut self) -> Replayed {
        self.ask_second();
        let of_rule = |rule: &Rule| OfRule {
            rule: rule.name().to_owned(),
            allowed: rule.tally().allowed(),
            denied: rule.tally().denied(),
            shadow_denied: rule.tally().would_have_denied(),
        };
        let of_key = |one: crate::serve::top::Denied| OfKey {
            key: key_values(dashpot::Key::new(&one.key)),
            rule: one.rule,
            denied: one.times,
        };
        let told = |at: u64| {
            let at = jiff::Timestamp::from_nanosecond(i128::from(at)).unwrap_or_default();
            format!("{at:.0}")
        };
        Replayed {
            requests: self.requests,
            left_out: self.left_out,
            first_left_out: self.first_left_out,
            from: self.from.map(told),
            to: self.from.map(|_| told(self.now)),
            denied: self.denied,
            delayed: self.delayed,
            longest_delay: Seconds(self.longest_delay),
            rules: self.rules.rules().iter().map(of_rule).collect(),
            top: self.top.list(TOLD).into_iter().map(of_key).collect(),
            series: self.series,
        }
    }
}
