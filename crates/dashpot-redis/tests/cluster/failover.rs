//! A node dies, and its replica takes over.

use std::thread::sleep;
use std::time::{Duration, Instant};

use dashpot::{Algorithm, Window};
use dashpot_testkit::limit;
use dashpot_testkit::redis::slot;

use super::{callers_in, cluster_and_store};
use crate::support::calm::calmly;
use crate::support::load::{Asks, Load, admitted, slowest, unanswered};

const DEADLINE: Duration = Duration::from_millis(300);
/// What a busy machine may add to that.
const SLACK: Duration = Duration::from_millis(200);
const LIMIT: u64 = 300;

/// The slots that a primary has at first.
const SHARES: [std::ops::RangeInclusive<u16>; 3] = [0..=5460, 5461..=10_922, 10_923..=16_383];

#[test]
fn one_node_dies_and_only_its_callers_notice_until_its_replica_takes_over() {
    calmly(one_node_dies);
}

async fn one_node_dies() {
    let (cluster, store) = cluster_and_store(DEADLINE).await;
    let asks = |(number, caller): (usize, String)| -> Asks {
        let algorithm = Algorithm::ALL[number % 6];
        vec![(limit("load", algorithm, LIMIT, Window::DAY), caller)]
    };
    let shares = SHARES.map(|share| callers_in(|slot| share.contains(&slot), 4));
    let callers: Vec<Asks> = shares.into_iter().flatten().enumerate().map(asks).collect();
    let is_hit = |caller: usize| caller < 4;

    let load = Load::start(&store, &callers);
    sleep(Duration::from_millis(200));
    let hit = slot(callers[0][0].1.as_bytes());
    let died = Instant::now();
    let old = cluster.kill_primary_of(hit);
    sleep(Duration::from_millis(20));
    let new = cluster.wait_for_failover(hit, old);
    let promoted = Instant::now();
    sleep(Duration::from_millis(1600));
    let calls = load.stop().await;

    let (hit, spared): (Vec<_>, Vec<_>) = calls.iter().partition(|call| is_hit(call.caller));
    assert_eq!(unanswered(spared.iter().copied()).map(|call| &call.allowed), None);
    assert!(slowest(&calls) < DEADLINE + SLACK, "{:?}", slowest(&calls));
    assert!(unanswered(hit.iter().copied()).is_some(), "somebody must have noticed");
    let late = hit.iter().copied().filter(|call| call.started > promoted + Duration::from_secs(1));
    let late: Vec<_> = late.collect();
    assert!(late.len() > 100, "{} calls", late.len());
    assert_eq!(unanswered(late).map(|call| &call.allowed), None);
    for caller in 0..callers.len() {
        let most = if is_hit(caller) { 2 * LIMIT } else { LIMIT };
        let admitted = admitted(calls.iter().filter(|call| call.caller == caller));
        assert!(admitted <= most, "{caller}: {admitted}");
    }
    let last = hit.iter().filter(|call| call.allowed.is_err()).map(|call| call.started).max();
    let since = last.unwrap().checked_duration_since(promoted);
    eprintln!("the replica took over after {:?}; errors went on for {since:?}", promoted - died);
    eprintln!("the slowest call took {:?}", slowest(&calls));
    let keys = new.keys();
    let is_its = |asks: &&Asks| {
        let tag = format!("{{{}}}", asks[0].1).into_bytes();
        keys.iter().any(|key| key.windows(tag.len()).any(|part| part == tag))
    };
    assert_eq!(callers.iter().filter(is_its).count(), 4, "it counts there now");
}
