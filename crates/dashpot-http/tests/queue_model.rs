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
const INTERVAL: u64 = 40;
const MILLISECOND: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
struct Line {
    places: u64,
    undelayed: u64,
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

fn text(line: &Line, cost: u64) -> String {
    let rate = 1000 / INTERVAL;
    format!(
        "[[rule]]\nname = 'q'\nby = ['header:x-line']\nlimits = ['{rate}/s']\ncost = {cost}\n\
         algorithm = 'leaky-bucket'\nqueue = {}\nundelayed = {}\n",
        line.places, line.undelayed
    )
}

/// Whoever can go on does, before time passes.
async fn settle() {
    for _ in 0..12 {
        tokio::task::yield_now().await;
    }
}

async fn pass(clock: &ManualClock) {
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
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("DASHPOT_FULL").is_some() { 2000 } else { 64 };
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

/// Each keeps a place in every line that is meant, closes up in each of them, and leaves when the last of them lets it.
#[tokio::test(start_paused = true)]
async fn who_stands_in_two_lines_closes_up_in_both() {
    let queue = |name: &str, limit: &str, more: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nlimits = ['{limit}']\nalgorithm = 'leaky-bucket'\n\
             queue = 9\n{more}\n"
        )
    };
    let text = queue("fast", "25/s", "") + &queue("slow", "10/s", "match = { path = '/both/*' }");
    let (served, (store, clock), start) =
        (Arc::new(Mutex::new(Vec::new())), store(), Instant::now());
    let notes = served.clone();
    let inner = service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        notes.lock().unwrap().push((path, start.elapsed().as_millis() as u64));
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let service = limit(rules(&text), store).layer(inner);
    let come = |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        tokio::spawn(service.clone().oneshot(request))
    };
    let mut tasks = Vec::new();
    for path in ["/both/0", "/both/1", "/both/2", "/both/3", "/fast/4"] {
        tasks.push(come(path));
        settle().await;
    }
    for now in 0..700 {
        match now {
            10 => tasks[2].abort(),
            20 => tasks.push(come("/both/5")),
            _ => {}
        }
        settle().await;
        pass(&clock).await;
    }
    let expected =
        [("/both/0", 0), ("/both/1", 100), ("/fast/4", 120), ("/both/3", 200), ("/both/5", 300)];
    let expected = expected.map(|(path, at)| (path.to_owned(), at));
    assert_eq!(*served.lock().unwrap(), expected);
}

/// Who waits is not forgotten when the rules are read again.
#[tokio::test(start_paused = true)]
async fn who_waits_is_served_after_rules_were_replaced() {
    let (served, (store, clock)) = (Arc::new(Mutex::new(0)), store());
    let live = LiveRules::new(rules(&text(&Line { places: 9, undelayed: 0 }, 1)));
    let count = served.clone();
    let inner = service_fn(move |_: Request<Body>| {
        *count.lock().unwrap() += 1;
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let service = limit(live.clone(), store).layer(inner);
    let come = || tokio::spawn(service.clone().oneshot(Request::new(Body::empty())));
    let mut tasks: Vec<_> = (0..4).map(|_| come()).collect();
    settle().await;
    live.replace(rules("[[rule]]\nname = 'other'\nlimits = ['100/s']"));
    tasks.push(come());
    settle().await;
    assert_eq!(*served.lock().unwrap(), 2, "one by the old rules, one by the new");
    live.replace(rules(&text(&Line { places: 5, undelayed: 0 }, 1)));
    tasks.push(come());
    for _ in 0..INTERVAL * 4 {
        pass(&clock).await;
    }
    assert_eq!(*served.lock().unwrap(), 6);
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().status(), 200);
    }
}
