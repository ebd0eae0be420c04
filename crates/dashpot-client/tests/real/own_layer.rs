//! Our own layer on the other side: what it tells, in every style, is what the client goes by.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::{Router, routing};
use dashpot_client::Why;
use dashpot_http::{MemoryStore, RateLimitLayer, RuleSet};
use tokio::net::TcpListener;

use super::support::{Front, Outcome, assert_all_well, manners, repeated, run};

const CALLS: usize = 8;
const LIMIT: usize = 5;
const ALGORITHMS: [&str; 5] =
    ["token-bucket", "leaky-bucket", "fixed-window", "sliding-window", "sliding-log"];

/// Answers that let in, and answers that did not.
#[derive(Clone, Default)]
struct Tally(Arc<[AtomicUsize; 2]>);

impl Tally {
    fn counts(&self) -> (usize, usize) {
        let [allowed, denied] = &*self.0;
        (allowed.load(Ordering::Relaxed), denied.load(Ordering::Relaxed))
    }
}

async fn count(State(tally): State<Tally>, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    let kind = usize::from(!answer.status().is_success());
    tally.0[kind].fetch_add(1, Ordering::Relaxed);
    answer
}

/// A server with these rules, and how it fared.
async fn serve(rules: &str) -> (String, Tally) {
    let rules = RuleSet::parse(rules).unwrap();
    let tally = Tally::default();
    let app = Router::new()
        .route("/", routing::get(|| async { "here you are" }))
        .layer(RateLimitLayer::from_rules(rules, MemoryStore::new()))
        .layer(from_fn_with_state(tally.clone(), count));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    (url, tally)
}

fn rules(style: &str, algorithm: &str, limit: &str) -> String {
    format!(
        "[headers]\nstyles = [\"{style}\"]\n\
         [[rule]]\nname = \"api\"\nby = [\"ip\"]\nlimits = [\"{limit}\"]\nalgorithm = \"{algorithm}\"\n"
    )
}

/// One after the other, nobody is turned away; of many at once, only those who went before anything
/// was told.
async fn go(rules: &str, at_once: bool, front: Front) -> Vec<Outcome> {
    let (url, tally) = serve(rules).await;
    let outcomes = match at_once {
        true => front.at_once(&url, CALLS).await,
        false => front.in_turn(&url, CALLS).await,
    };
    assert_all_well(&outcomes);
    let (allowed, denied) = tally.counts();
    assert_eq!((allowed, denied), (CALLS, repeated(&outcomes)), "{rules}");
    let unavoidable = if at_once { CALLS - LIMIT } else { 0 };
    assert!(denied <= unavoidable, "{denied} were turned away\n{rules}{outcomes:#?}");
    outcomes
}

/// All algorithms at the same time, each with a server and a client of its own.
fn in_style_of(style: &str) {
    run(async {
        let mut tasks = Vec::new();
        for (number, algorithm) in ALGORITHMS.into_iter().enumerate() {
            for at_once in [false, true] {
                let rules = rules(style, algorithm, "5/s");
                let is_even = (number + usize::from(at_once)).is_multiple_of(2);
                let front = if is_even { Front::reqwest } else { Front::tower };
                let front = front(manners().build());
                tasks.push(tokio::spawn(async move { go(&rules, at_once, front).await }));
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn nobody_who_could_know_is_turned_away_in_the_style_of_ietf() {
    in_style_of("ietf");
}

#[test]
fn nobody_who_could_know_is_turned_away_in_the_style_of_draft_07() {
    in_style_of("draft-07");
}

#[test]
fn nobody_who_could_know_is_turned_away_in_the_style_of_draft_06() {
    in_style_of("draft-06");
}

#[test]
fn nobody_who_could_know_is_turned_away_in_the_style_of_x_ratelimit() {
    in_style_of("x-ratelimit");
}

#[test]
fn where_nothing_is_told_but_retry_after_everybody_gets_in() {
    run(async {
        let (url, tally) = serve(&rules("none", "token-bucket", "10/s burst 5")).await;
        let outcomes = Front::tower(manners().build()).at_once(&url, CALLS).await;
        assert_all_well(&outcomes);
        let (allowed, denied) = tally.counts();
        assert_eq!((allowed, denied), (CALLS, repeated(&outcomes)));
        // Those who find nothing left at first, and then all go in: one, two, …
        assert!(denied <= CALLS - LIMIT, "{outcomes:#?}");
        assert!(outcomes.iter().any(|it| !it.report.waited_for(Why::RetryAfter).is_zero()));
    });
}

#[test]
fn who_waits_in_a_queue_over_there_is_not_turned_away() {
    run(async {
        let rules = format!("{}queue = 20\n", rules("ietf", "leaky-bucket", "20/s"));
        let (url, tally) = serve(&rules).await;
        let outcomes = Front::reqwest(manners().build()).at_once(&url, CALLS).await;
        assert_all_well(&outcomes);
        assert_eq!(tally.counts(), (CALLS, 0));
    });
}

#[test]
fn who_finds_the_queue_over_there_full_comes_again() {
    run(async {
        let rules = format!("{}queue = 4\n", rules("ietf", "leaky-bucket", "10/s"));
        let (url, tally) = serve(&rules).await;
        let outcomes = Front::tower(manners().build()).at_once(&url, CALLS).await;
        assert_all_well(&outcomes);
        let (allowed, denied) = tally.counts();
        assert_eq!((allowed, denied), (CALLS, repeated(&outcomes)));
        // One goes on, four wait, and when the others come again there is room for them.
        assert!(denied <= CALLS - LIMIT, "{outcomes:#?}");
    });
}

#[test]
fn of_two_limits_both_are_kept() {
    run(async {
        let rules = rules("ietf", "fixed-window", "5/s").replace("\"5/s\"", "\"3/s\", \"5/2s\"");
        let outcomes = go(&rules, false, Front::reqwest(manners().build())).await;
        assert!(outcomes.iter().any(|it| !it.report.waited_for(Why::Quota).is_zero()));
    });
}
