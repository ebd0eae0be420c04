//! What holds whatever servers say, and whoever loses patience or interest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dashpot::{Clock, Percent, Quota, Timestamp, Window};
use dashpot_client::{Manners, Pace, Patience, Polite, Report};
use proptest::collection::vec;
use proptest::prelude::*;
use tower::ServiceExt;

use super::wild::{Event, Line, Wild, line};
use crate::common::{World, get, millis, secs};

/// A call: which lane, when, how patient it is, how long its answer is kept, and when it is dropped if it is.
#[derive(Clone, Debug)]
struct Plan {
    lane: usize,
    at: u64,
    patience: Option<u64>,
    keeps: u64,
    dropped: Option<u64>,
}

#[derive(Clone, Debug)]
struct Settings {
    attempts: u32,
    share: u8,
    concurrent: Option<u64>,
    every: Option<u64>,
    /// For all lanes together, one each so many milliseconds.
    overall: Option<u64>,
    most_lanes: usize,
    seed: u64,
}

fn plan() -> impl Strategy<Value = Plan> {
    let patience = prop_oneof![2 => Just(None), 1 => (0..40_000_u64).prop_map(Some)];
    let dropped = prop_oneof![2 => Just(None), 1 => (0..40_000_u64).prop_map(Some)];
    let at = prop_oneof![2 => Just(0), 1 => 0..20_000_u64];
    (0..3_usize, at, patience, 0..2000_u64, dropped).prop_map(
        |(lane, at, patience, keeps, dropped)| Plan { lane, at, patience, keeps, dropped },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let concurrent = prop_oneof![1 => Just(None), 1 => (1..4_u64).prop_map(Some)];
    let every = prop_oneof![1 => Just(None), 1 => (1..1000_u64).prop_map(Some)];
    let overall = prop_oneof![2 => Just(None), 1 => (1..500_u64).prop_map(Some)];
    (1..6_u32, 0..=100_u8, concurrent, every, overall, any::<u64>()).prop_map(
        |(attempts, share, concurrent, every, overall, seed)| {
            let most_lanes = 100;
            Settings { attempts, share, concurrent, every, overall, most_lanes, seed }
        },
    )
}

/// What happened, and who was dropped before being sent.
struct Story {
    start: Timestamp,
    events: Vec<(Timestamp, Event)>,
    /// How often each call says it was sent.
    reports: BTreeMap<usize, u32>,
    unsent: BTreeSet<usize>,
}

fn play(plans: &[Plan], lines: Vec<Line>, settings: &Settings) -> Story {
    let mut world = World::new();
    let start = world.clock.now();
    let wild = Wild::new(&world.clock, lines);
    let mut pace = match settings.every {
        Some(every) => Pace::every(millis(every)).unwrap(),
        None => Pace::default(),
    };
    if let Some(most) = settings.concurrent {
        pace = pace.concurrent(most);
    }
    let manners = Manners::builder()
        .clock(world.clock.clone())
        .seed(settings.seed)
        .attempts(settings.attempts)
        .retry_share(Percent::new(settings.share))
        .retry_floor("0/min".parse().unwrap())
        .most_lanes(settings.most_lanes)
        .pace(pace);
    let manners = match settings.overall {
        Some(every) => manners.overall(Quota::new(1, Window::new(millis(every)).unwrap())).build(),
        None => manners.build(),
    };
    let polite = Polite::new(wild.clone(), manners);
    let reports = std::rc::Rc::new(std::cell::RefCell::new(BTreeMap::new()));
    for (number, plan) in plans.iter().enumerate() {
        let mut request = get(&format!("http://lane{}/{number}", plan.lane));
        if let Some(patience) = plan.patience {
            request.extensions_mut().insert(Patience(millis(patience)));
        }
        let (polite, clock, reports) = (polite.clone(), world.clock.clone(), reports.clone());
        let (at, keeps) = (world.at(millis(plan.at)), millis(plan.keeps));
        world.spawn(async move {
            clock.until(at).await;
            let report = match polite.oneshot(request).await {
                Ok(response) => {
                    clock.sleep(keeps).await;
                    response.extensions().get::<Report>().unwrap().clone()
                }
                Err(error) => error.report().clone(),
            };
            reports.borrow_mut().insert(number, report.attempts());
        });
    }
    let mut drops: Vec<(u64, usize)> = plans
        .iter()
        .enumerate()
        .filter_map(|(number, plan)| Some((plan.at + plan.dropped?, number)))
        .collect();
    drops.sort_unstable();
    let mut unsent = BTreeSet::new();
    for (at, number) in drops {
        world.run_until(millis(at));
        if !world.is_over(number) && !wild.journal.has_sent(number) {
            unsent.insert(number);
        }
        world.drop_task(number);
    }
    // Panics if somebody waits for what never comes.
    world.run();
    let reports = reports.take();
    Story { start, events: wild.journal.all(), reports, unsent }
}

fn check(plans: &[Plan], settings: &Settings, story: &Story) -> Result<(), TestCaseError> {
    let mut holds = BTreeMap::<String, Timestamp>::new();
    let mut on_their_way = BTreeMap::<String, u64>::new();
    let mut last_sent = BTreeMap::<String, Timestamp>::new();
    let mut firsts = BTreeMap::<String, Vec<usize>>::new();
    let mut again = BTreeMap::<String, u64>::new();
    let mut sent = BTreeMap::<usize, u32>::new();
    let mut last_of_all = None;
    let is_shared = settings.most_lanes < 4;
    for (at, event) in &story.events {
        let at = *at;
        match event {
            Event::Sent { lane, call } => {
                let plan = &plans[*call];
                let hold = holds.get(lane).copied().unwrap_or_default();
                prop_assert!(at >= hold, "{call} goes {:?} too soon", hold.since(at));
                let patience = plan.patience.map_or(secs(120), millis);
                let waited = at.since(story.start.after(millis(plan.at)));
                prop_assert!(waited <= patience, "{call} goes after {waited:?} of {patience:?}");
                let times = sent.entry(*call).or_default();
                *times += 1;
                prop_assert!(*times <= settings.attempts, "{call} goes {times} times");
                let firsts = firsts.entry(lane.clone()).or_default();
                let again = again.entry(lane.clone()).or_default();
                match *times {
                    1 => firsts.push(*call),
                    _ => *again += 1,
                }
                let may = firsts.len() as u64 * u64::from(settings.share) / 100;
                // Those who share a lane share its budget.
                if !is_shared {
                    prop_assert!(*again <= may, "{again} made again of {}", firsts.len());
                }
                let flying = on_their_way.entry(lane.clone()).or_default();
                *flying += 1;
                let most = settings.concurrent.unwrap_or(u64::MAX);
                prop_assert!(*flying <= most, "{flying} on their way");
                let of_all = last_of_all.replace(at);
                if let (Some(every), Some(last)) = (settings.overall, of_all) {
                    let since = at.since(last);
                    prop_assert!(since >= millis(every), "{since:?} after the last of all");
                }
                let last = last_sent.insert(lane.clone(), at);
                if let (Some(every), Some(last)) = (settings.every, last) {
                    let since = at.since(last);
                    prop_assert!(since >= millis(every), "{since:?} after the last");
                }
            }
            Event::Answered { lane, hold: Some(hold), .. } => {
                let before = holds.entry(lane.clone()).or_default();
                *before = (*before).max(*hold);
            }
            Event::Answered { .. } => {}
            Event::Landed { lane, .. } => *on_their_way.get_mut(lane).unwrap() -= 1,
        }
    }
    for firsts in firsts.values() {
        let made: Vec<(u64, usize)> = firsts.iter().map(|call| (plans[*call].at, *call)).collect();
        // Those who come when there is room again do not wait for those who share.
        prop_assert!(is_shared || made.is_sorted(), "first attempts went in the order {made:?}");
    }
    for call in &story.unsent {
        prop_assert!(!sent.contains_key(call), "{call} was dropped and then sent");
    }
    for (call, times) in &story.reports {
        prop_assert_eq!(sent.get(call).copied().unwrap_or(0), *times, "{} as reported", call);
    }
    let dropped = plans.iter().filter(|plan| plan.dropped.is_some()).count();
    prop_assert!(story.reports.len() + dropped >= plans.len(), "somebody is missing");
    Ok(())
}

proptest! {
    #![proptest_config(super::cases(128))]

    #[test]
    fn whatever_servers_say_nobody_goes_too_soon_too_late_or_too_often(
        plans in vec(plan(), 1..40),
        lines in vec(line(), 1..30),
        settings in settings(),
    ) {
        let story = play(&plans, lines, &settings);
        check(&plans, &settings, &story)?;
    }

    #[test]
    fn whoever_is_dropped_nobody_else_waits_for_ever(
        plans in vec(plan(), 10..60),
        lines in vec(line(), 1..10),
        seed in any::<u64>(),
    ) {
        // One at a time: a place that leaks is one too many.
        let settings = Settings {
            attempts: 3,
            share: 50,
            concurrent: Some(1),
            every: None,
            overall: None,
            most_lanes: 100,
            seed,
        };
        let mut plans = plans;
        for plan in &mut plans {
            plan.lane = 0;
        }
        let story = play(&plans, lines, &settings);
        check(&plans, &settings, &story)?;
    }

    #[test]
    fn who_shares_a_lane_is_slower_and_never_too_fast(
        plans in vec(plan(), 1..40),
        lines in vec(line(), 1..30),
        settings in settings(),
        most_lanes in 0..3_usize,
    ) {
        let settings = Settings { most_lanes, ..settings };
        let story = play(&plans, lines, &settings);
        check(&plans, &settings, &story)?;
    }

    #[test]
    fn what_chance_does_is_the_same_with_the_same_seed(
        plans in vec(plan(), 1..20),
        lines in vec(line(), 1..10),
        settings in settings(),
    ) {
        let first = play(&plans, lines.clone(), &settings);
        let second = play(&plans, lines, &settings);
        prop_assert_eq!(first.events, second.events);
    }
}

#[test]
fn a_plain_story_is_told_in_full() {
    // So that the properties are known to see something.
    let plans: Vec<Plan> =
        (0..3).map(|_| Plan { lane: 0, at: 0, patience: None, keeps: 0, dropped: None }).collect();
    let lines = vec![Line { status: 200, said: super::wild::Said::Nothing, takes: 100 }];
    let settings = Settings {
        attempts: 2,
        share: 20,
        concurrent: Some(1),
        every: None,
        overall: None,
        most_lanes: 100,
        seed: 1,
    };
    let story = play(&plans, lines, &settings);
    let sent: Vec<Duration> = story
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Sent { .. }))
        .map(|(at, _)| at.since(story.start))
        .collect();
    assert_eq!(sent, [millis(0), millis(100), millis(200)]);
    assert_eq!(story.reports.into_values().collect::<Vec<_>>(), [1, 1, 1]);
}
