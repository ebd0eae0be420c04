//! Two lines at once beside a slow model of them: a request may stand in one, in the other, or in both, where it leaves
//! when both let it. If some hang up, it is not said who gets which turn; but nobody is forgotten, and nobody overtakes.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use http::{Request, Response};
use proptest::prelude::*;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{limit, rules, store};
use crate::queue_model::{pass, settle};

/// Milliseconds between two who leave.
const INTERVALS: [u64; 2] = [40, 100];

/// In the first line, in the second, or in both.
const KINDS: [[bool; 2]; 3] = [[true, false], [false, true], [true, true]];

#[derive(Clone, Debug)]
enum Event {
    /// Somebody comes to the first line, the second, or both.
    Comes([bool; 2]),
    /// One of those who wait hangs up.
    HangsUp(usize),
}

/// A line by itself: who has not had its turn, and when the next has.
#[derive(Clone, Debug, Default)]
struct Line {
    waiting: Vec<usize>,
    empty_at: u64,
}

impl Line {
    fn level(&self, now: u64, interval: u64) -> u64 {
        self.empty_at.saturating_sub(now) + self.waiting.len() as u64 * interval
    }

    /// Gives its turn to who has it now.
    fn serve(&mut self, now: u64, interval: u64) {
        if self.empty_at <= now && !self.waiting.is_empty() {
            self.waiting.remove(0);
            self.empty_at = self.empty_at.max(now) + interval;
        }
    }
}

#[derive(Default)]
struct Model {
    lines: [Line; 2],
    waiting: BTreeSet<usize>,
    left: Vec<(usize, u64)>,
}

impl Model {
    fn comes(&mut self, now: u64, number: usize, which: [bool; 2], places: u64) -> bool {
        let meant = || (0..2).filter(|nth| which[*nth]);
        let has_room = |nth: usize| {
            let interval = INTERVALS[nth];
            self.lines[nth].level(now, interval) <= places * interval
        };
        if !meant().all(has_room) {
            return false;
        }
        for nth in meant() {
            self.lines[nth].waiting.push(number);
        }
        self.waiting.insert(number);
        self.serve(now);
        true
    }

    fn serve(&mut self, now: u64) {
        for (line, interval) in self.lines.iter_mut().zip(INTERVALS) {
            line.serve(now, interval);
        }
        let lines = &self.lines;
        let is_waiting = |number: &usize| lines.iter().any(|line| line.waiting.contains(number));
        let leaving: Vec<_> = self.waiting.iter().copied().filter(|n| !is_waiting(n)).collect();
        for number in leaving {
            self.waiting.remove(&number);
            self.left.push((number, now));
        }
    }
}

fn text(places: u64) -> String {
    let rule = |name: &str, limit: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nmatch = {{ header = {{ x-{name} = 'yes' }} }}\n\
             limits = ['{limit}']\nalgorithm = 'leaky-bucket'\nqueue = {places}\n"
        )
    };
    rule("a", "25/s") + &rule("b", "10/s")
}

async fn play(places: u64, events: Vec<(u64, Event)>) -> Result<(), TestCaseError> {
    let (served, (store, clock), start) =
        (Arc::new(Mutex::new(Vec::new())), store(), Instant::now());
    let notes = served.clone();
    let inner = service_fn(move |request: Request<Body>| {
        let number: usize = request.uri().path()[1..].parse().unwrap();
        notes.lock().unwrap().push((number, start.elapsed().as_millis() as u64));
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let service = limit(rules(&text(places)), store).layer(inner);
    let mut model = Model::default();
    let mut tasks: Vec<(JoinHandle<u16>, bool, [bool; 2])> = Vec::new();
    let nobody_hung_up = events.iter().all(|(_, event)| matches!(event, Event::Comes(_)));
    let last = events.iter().map(|(pause, _)| pause).sum::<u64>() + 20 * INTERVALS[1];
    let (mut events, mut now, mut next) = (events.into_iter().peekable(), 0, 0);
    next += events.peek().map_or(0, |(pause, _)| *pause);
    while now <= last {
        while next == now && events.peek().is_some() {
            match events.next().unwrap().1 {
                Event::Comes(which) => {
                    let number = tasks.len();
                    let admitted = model.comes(now, number, which, places);
                    let mut request = Request::get(format!("/{number}"));
                    for (name, _) in ["x-a", "x-b"].iter().zip(which).filter(|(_, meant)| *meant) {
                        request = request.header(*name, "yes");
                    }
                    let future = service.clone().oneshot(request.body(Body::empty()).unwrap());
                    let task = async move { future.await.unwrap().status().as_u16() };
                    tasks.push((tokio::spawn(task), admitted, which));
                }
                Event::HangsUp(nth) => {
                    let waiting: Vec<_> =
                        tasks.iter().filter(|(task, ..)| !task.is_finished()).collect();
                    if let Some((task, ..)) = waiting.get(nth % waiting.len().max(1)) {
                        task.abort();
                    }
                }
            }
            settle().await;
            next = now + events.peek().map_or(0, |(pause, _)| *pause);
        }
        pass(&clock).await;
        now += 1;
        model.serve(now);
    }
    let mut left = served.lock().unwrap().clone();
    let mut statuses = Vec::new();
    for (task, admitted, which) in tasks {
        statuses.push((task.await.ok(), admitted, which));
    }
    if nobody_hung_up {
        left.sort_by_key(|(number, at)| (*at, *number));
        model.left.sort_by_key(|(number, at)| (*at, *number));
        prop_assert_eq!(&left, &model.left);
    }
    for (number, (status, admitted, _)) in statuses.iter().enumerate() {
        let served = left.iter().filter(|(known, _)| *known == number).count();
        match status {
            Some(200) => prop_assert_eq!(served, 1, "{}", number),
            Some(429) => prop_assert_eq!((served, *admitted && nobody_hung_up), (0, false)),
            Some(other) => prop_assert!(false, "{number}: {other}"),
            None => prop_assert_eq!(served, 0, "who hung up is not served"),
        }
    }
    // Those who stand in the same lines leave them in the order they came.
    for which in KINDS {
        let same = left.iter().map(|(number, _)| *number).filter(|n| statuses[*n].2 == which);
        let numbers: Vec<_> = same.collect();
        prop_assert!(numbers.is_sorted(), "{numbers:?}");
    }
    Ok(())
}

fn events(hanging_up: u32) -> impl Strategy<Value = Vec<(u64, Event)>> {
    let pause = prop_oneof![3 => Just(0_u64), 3 => 1..60_u64, 1 => 0..200_u64];
    let which = prop::sample::select(&KINDS[..]);
    let hangs_up = (0..20_usize).prop_map(Event::HangsUp);
    let event = prop_oneof![4 => which.prop_map(Event::Comes), hanging_up => hangs_up];
    prop::collection::vec((pause, event), 1..30)
}

fn run(places: u64, events: Vec<(u64, Event)>) -> Result<(), TestCaseError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play(places, events))
}

proptest! {
    #![proptest_config(crate::queue_model::config())]

    #[test]
    fn nobody_hangs_up(places in 1..9_u64, events in events(0)) {
        run(places, events)?;
    }

    #[test]
    fn some_hang_up(places in 1..9_u64, events in events(3)) {
        run(places, events)?;
    }
}
