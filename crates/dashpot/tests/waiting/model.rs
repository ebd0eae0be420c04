//! Random arrivals and departures, tick by tick equal to a plain queue in front of plain checks.

use std::collections::VecDeque;
use std::time::Duration;

use dashpot::{Algorithm, Window};
use dashpot_testkit::{limit, workload};

use crate::crowd::Crowd;
use crate::{LONG, limiter};

const LIMIT: u64 = 12;
const TICK: Duration = Duration::from_millis(700);

fn same_as_a_queue(algorithm: Algorithm, seed: u64) {
    let policy = limit("p", algorithm, LIMIT, Window::MINUTE);
    let ((limiter, clock), (model, model_clock)) = (limiter(policy.clone()), limiter(policy));
    let mut random = workload::uniform(seed, 1_000_000, TICK).map(|arrival| arrival.key as u64);
    let mut below = |end: u64| random.next().expect("it is endless") % end;

    let mut crowd = Crowd::new();
    let mut queue: VecDeque<(usize, u64)> = VecDeque::new();
    let mut arrived = 0;
    for tick in 0..400 {
        clock.advance(TICK);
        model_clock.advance(TICK);
        // Those whose time has come are served before anybody comes or leaves.
        let serve = |queue: &mut VecDeque<(usize, u64)>| {
            let mut served = Vec::new();
            while let Some((first, cost)) = queue.front()
                && model.check_n("k", *cost).is_allowed()
            {
                served.push(*first);
                queue.pop_front();
            }
            served
        };
        assert_eq!(crowd.done(), serve(&mut queue), "{algorithm}, seed {seed}, tick {tick}");
        if !queue.is_empty() && below(4) == 0 {
            let leaves = below(queue.len() as u64) as usize;
            let (number, _) = queue.remove(leaves).expect("it is one of them");
            crowd.leave(number);
            assert_eq!(crowd.done(), serve(&mut queue), "{algorithm}, seed {seed}, tick {tick}");
        }
        if below(6) == 0 {
            let most = 1 + below(LIMIT);
            let cost = 1 + below(most);
            queue.push_back((arrived, cost));
            arrived += 1;
            let done = crowd.add(limiter.until_ready("k", cost, LONG));
            let done: Vec<_> = done.into_iter().map(|(number, _)| number).collect();
            assert_eq!(done, serve(&mut queue), "{algorithm}, seed {seed}, tick {tick}");
        }
        assert_eq!(limiter.store().waiting(), queue.len());
        assert_eq!(limiter.peek("k"), model.peek("k"));
    }
    assert!(arrived > 30);
}

#[test]
fn whoever_comes_and_leaves_it_is_a_queue() {
    for algorithm in Algorithm::ALL.into_iter().filter(|one| *one != Algorithm::Concurrency) {
        (0..20).for_each(|seed| same_as_a_queue(algorithm, seed));
    }
}
