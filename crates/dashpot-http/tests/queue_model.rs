//! A line beside a slow model of it: first come, first served, at a constant rate, whoever hangs up and whenever. Time
//! passes millisecond by millisecond, for the store and for those who wait alike.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use dashpot::ManualClock;
use dashpot_rules::LiveRules;
use http::{Request, Response};
use proptest::prelude::*;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{limit, rules, store};

/// One after the other leaves after so many milliseconds for each unit.
pub(crate) const INTERVAL: u64 = 40;
const MILLISECOND: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) places: u64,
    pub(crate) undelayed: u64,
}

/// What happens, so many milliseconds after what happened before.
#[derive(Clone, Debug)]
enum Event {
    /// Somebody comes to a line, and costs this.
    Comes { line: u8, cost: u64 },
    /// One of those who wait hangs up, counted from the front of all lines.
    HangsUp(usize),
}

/// The model: who waits in a line, and when all who have left it have run out of the bucket.
#[derive(Clone, Debug, Default)]
struct Model {
    waiting: VecDeque<(usize, u64)>,
    empty_at: u64,
}

impl Model {
    /// What is in the bucket of those who have left, in milliseconds of draining.
    fn level(&self, now: u64) -> u64 {
        self.empty_at.saturating_sub(now)
    }

    /// Lets go who may go.
    fn serve(&mut self, line: &Line, now: u64, left: &mut Vec<(usize, u64)>) {
        while self.level(now) <= line.undelayed * INTERVAL {
            let Some((number, cost)) = self.waiting.pop_front() else { return };
            self.empty_at = self.empty_at.max(now) + cost * INTERVAL;
            left.push((number, now));
        }
    }

    /// Whether there is a place, which is taken then.
    fn comes(&mut self, line: &Line, now: u64, number: usize, cost: u64) -> bool {
        let waiting: u64 = self.waiting.iter().map(|(_, cost)| cost).sum();
        let level = self.level(now) + waiting * INTERVAL;
        let has_room = level + cost * INTERVAL <= (line.places + 1) * INTERVAL;
        if has_room {
            self.waiting.push_back((number, cost));
        }
        has_room
    }
}

type Served = Arc<Mutex<Vec<(usize, u64)>>>;

pub(crate) fn text(line: &Line, cost: u64) -> String {
    let rate = 1000 / INTERVAL;
    format!(
        "[[rule]]\nname = 'q'\nby = ['header:x-line']\nlimits = ['{rate}/s']\ncost = {cost}\n\
         algorithm = 'leaky-bucket'\nqueue = {}\nundelayed = {}\n",
        line.places, line.undelayed
    )
}

/// Whoever can go on does, before time passes.
pub(crate) async fn settle() {
    for _ in 0..12 {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn pass(clock: &ManualClock) {
    clock.advance(MILLISECOND);
    tokio::time::advance(MILLISECOND).await;
    settle().await;
}

/// Plays the events to the layer and to the model.
async fn play(line: Line, events: Vec<(u64, Event)>) -> Result<(), TestCaseError> {
    let (served, (store, clock), start) = (Served::default(), store(), Instant::now());
    let live = LiveRules::new(rules(&text(&line, 1)));
    let notes = served.clone();
    let inner = service_fn(move |request: Request<Body>| {
        let number = request.uri().path()[1..].parse().unwrap();
        notes.lock().unwrap().push((number, start.elapsed().as_millis() as u64));
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let service = limit(live.clone(), store).layer(inner);

    let mut lines: BTreeMap<u8, Model> = BTreeMap::new();
    let mut tasks: Vec<JoinHandle<u16>> = Vec::new();
    let (mut expected, mut denied, mut now) = (Vec::new(), Vec::new(), 0);
    let last = events.iter().map(|(pause, _)| pause).sum::<u64>() + 40 * INTERVAL;
    let mut events = events.into_iter().peekable();
    let mut next = events.peek().map_or(u64::MAX, |(pause, _)| *pause);
    while now <= last {
        while next == now {
            let (_, event) = events.next().unwrap();
            match event {
                Event::Comes { line: name, cost } => {
                    let number = tasks.len();
                    let model = lines.entry(name).or_default();
                    if !model.comes(&line, now, number, cost) {
                        denied.push(number);
                    }
                    model.serve(&line, now, &mut expected);
                    // The cost is the rule's, so another cost is another rule of the same name.
                    live.replace(rules(&text(&line, cost)));
                    let request = Request::get(format!("/{number}"));
                    let request = request.header("x-line", name.to_string());
                    let future = service.clone().oneshot(request.body(Body::empty()).unwrap());
                    tasks
                        .push(tokio::spawn(async move { future.await.unwrap().status().as_u16() }));
                }
                Event::HangsUp(nth) => {
                    let count: usize = lines.values().map(|model| model.waiting.len()).sum();
                    let mut nth = if count > 0 { nth % count } else { usize::MAX };
                    for model in lines.values_mut() {
                        if nth < model.waiting.len() {
                            let (number, _) = model.waiting.remove(nth).unwrap();
                            tasks[number].abort();
                            break;
                        }
                        nth = nth.saturating_sub(model.waiting.len());
                    }
                }
            }
            settle().await;
            next = events.peek().map_or(u64::MAX, |(pause, _)| now + pause);
        }
        pass(&clock).await;
        now += 1;
        for model in lines.values_mut() {
            model.serve(&line, now, &mut expected);
        }
    }
    // Those of different lines who leave in the same millisecond do so in any order.
    let mut left = served.lock().unwrap().clone();
    for list in [&mut left, &mut expected] {
        list.sort_by_key(|(number, at)| (*at, *number));
    }
    prop_assert_eq!(left, expected);
    for (number, task) in tasks.into_iter().enumerate() {
        let is_denied = denied.contains(&number);
        match task.await {
            Ok(status) => prop_assert_eq!(status, if is_denied { 429 } else { 200 }, "{}", number),
            Err(error) => prop_assert!(error.is_cancelled() && !is_denied, "{number}: {error}"),
        }
    }
    Ok(())
}

fn run(line: Line, events: Vec<(u64, Event)>) -> Result<(), TestCaseError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play(line, events))
}

/// Comings and goings, often at the same moment, and often faster than they are served.
fn events(costs: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Vec<(u64, Event)>> {
    let pause =
        prop_oneof![3 => Just(0_u64), 3 => 1..INTERVAL, 1 => Just(INTERVAL), 1 => 0..200_u64];
    let comes = (0..2_u8, costs).prop_map(|(line, cost)| Event::Comes { line, cost });
    let event = prop_oneof![3 => comes, 2 => (0..20_usize).prop_map(Event::HangsUp)];
    prop::collection::vec((pause, event), 1..40)
}

/// With room for this cost at least: rules that could never be met are refused.
fn line(cost: u64) -> impl Strategy<Value = Line> {
    (cost..12).prop_flat_map(|places| {
        (Just(places), prop_oneof![2 => Just(0), 1 => 0..=places])
            .prop_map(|(places, undelayed)| Line { places, undelayed })
    })
}

/// More of them, if there is time.
pub(crate) fn config() -> ProptestConfig {
    let cases = if std::env::var_os("DASHPOT_FULL").is_some() { 1000 } else { 64 };
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn requests_that_cost_the_same(line in line(1), events in events(1..=1)) {
        run(line, events)?;
    }

    #[test]
    fn requests_that_cost_more_or_less(line in line(3), events in events(1..=4)) {
        run(line, events)?;
    }
}
