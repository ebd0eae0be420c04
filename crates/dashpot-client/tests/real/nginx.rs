//! nginx with `limit_req`, which turns away without a word, unless it is told to say one.

use std::fs;
use std::time::Duration;

use dashpot_client::{GaveUp, Manners, Pace, Why};
use dashpot_testkit::Nginx;
use dashpot_testkit::process::until;

use super::support::{Front, PATIENCE, assert_all_well, manners, repeated, run};

/// An attempt, as nginx saw it: by its clock, in milliseconds.
#[derive(Debug)]
struct Attempt {
    status: u16,
    from: u64,
    to: u64,
}

/// nginx with this rate, and these lines where it is limited.
fn nginx(rate: &str, limits: &str) -> Nginx {
    let log =
        "log_format attempt '$status $msec $request_time';\naccess_log DIRECTORY/attempts attempt;";
    let zone = format!("limit_req_zone $server_name zone=all:1m rate={rate};");
    // What `return` answers is not limited; what has contents is.
    Nginx::start(&format!("{log}\n{zone}"), &format!("location / {{\n{limits}\nempty_gif;\n}}"))
}

fn url(nginx: &Nginx) -> String {
    format!("http://{}/", nginx.address())
}

/// What came, once it is as many: nginx writes it down after it answered.
fn attempts(nginx: &Nginx, count: usize) -> Vec<Attempt> {
    let file = nginx.directory().join("attempts");
    let millis = |seconds: &str| seconds.replace('.', "").parse::<u64>().unwrap();
    until("nginx to write down what came", PATIENCE, || {
        let text = fs::read_to_string(&file).unwrap();
        let read = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            let to = millis(words[1]);
            Attempt { status: words[0].parse().unwrap(), from: to - millis(words[2]), to }
        };
        let is_whole = text.ends_with('\n') && text.lines().count() >= count;
        is_whole.then(|| text.lines().map(read).collect())
    })
}

fn denials(attempts: &[Attempt]) -> usize {
    attempts.iter().filter(|attempt| attempt.status != 200).count()
}

/// All calls are let in at once, and none is turned away: the pace is what keeps them.
fn paced(pace: Pace, limits: &str, front: fn(Manners) -> Front) {
    let nginx = nginx("20r/s", limits);
    run(async {
        let outcomes = front(manners().pace(pace).build()).at_once(&url(&nginx), 25).await;
        assert_all_well(&outcomes);
        let attempts = attempts(&nginx, 25);
        assert_eq!((attempts.len(), denials(&attempts)), (25, 0), "{attempts:?}");
        assert!(outcomes.iter().any(|it| !it.report.waited_for(Why::Pace).is_zero()));
    });
}

#[test]
fn a_pace_just_under_the_rate_is_never_turned_away() {
    // In any time there come no more than the pace's burst, what its rate gives, and four that were
    // on their way: whatever the machine does, that is less than nginx takes.
    let pace = Pace::at_most("19/s burst 8".parse().unwrap()).concurrent(4);
    paced(pace, "limit_req zone=all burst=12 nodelay;", Front::reqwest);
}

#[test]
fn a_leaky_pace_at_exactly_the_rate_is_never_turned_away() {
    // One at a time: one that was late, and the next one that is not.
    let pace = Pace::leaky("20/s".parse().unwrap(), 100).concurrent(1);
    paced(pace, "limit_req zone=all burst=2 nodelay;", Front::tower);
}

/// One call after the other, each too early: backoff finds the way in.
fn recovers(limits: &str, front: fn(Manners) -> Front) {
    let nginx = nginx("50r/s", limits);
    let (base, cap) = (Duration::from_millis(200), Duration::from_secs(1));
    let manners = manners().backoff(base, cap).build();
    run(async {
        let outcomes = front(manners).in_turn(&url(&nginx), 8).await;
        assert_all_well(&outcomes);
        let attempts = attempts(&nginx, 8 + repeated(&outcomes));
        assert_eq!(denials(&attempts), repeated(&outcomes), "{attempts:?}");
        assert!(outcomes.iter().any(|it| !it.report.waited_for(Why::Backoff).is_zero()));
    });
}

#[test]
fn without_a_pace_backoff_recovers_from_a_bare_503() {
    recovers("limit_req zone=all;", Front::tower);
}

#[test]
fn without_a_pace_backoff_recovers_from_a_bare_429() {
    recovers("limit_req zone=all; limit_req_status 429;", Front::reqwest);
}

/// Who is let in once a minute is not asked more often than the budget allows.
fn within_budget(limits: &str, most: u32) {
    let nginx = nginx("1r/m", limits);
    let short = Duration::from_millis(5);
    let manners = manners().backoff(short, 2 * short).build();
    run(async {
        let outcomes = Front::reqwest(manners).in_turn(&url(&nginx), 20).await;
        let well = outcomes.iter().filter(|outcome| outcome.status == 200).count();
        assert_eq!(well, 1);
        // Ten a minute, and a fifth of all calls.
        assert!(repeated(&outcomes) <= 10 + 20 / 5, "{outcomes:?}");
        let attempts = attempts(&nginx, 20 + repeated(&outcomes));
        assert_eq!(attempts.len(), 20 + repeated(&outcomes), "{attempts:?}");
        let gave_up = |why| outcomes.iter().filter(|it| it.report.gave_up() == Some(why)).count();
        assert!(gave_up(GaveUp::Attempts) >= 1, "{outcomes:?}");
        assert!(gave_up(GaveUp::Budget) >= 1, "{outcomes:?}");
        assert_eq!(gave_up(GaveUp::Attempts) + gave_up(GaveUp::Budget), 19, "{outcomes:?}");
        assert!(outcomes.iter().all(|outcome| outcome.report.attempts() <= most));
    });
}

#[test]
fn who_answers_503_to_all_is_not_asked_more_often_than_the_budget_allows() {
    within_budget("limit_req zone=all;", 4);
}

#[test]
fn who_answers_429_to_all_is_not_asked_more_often_than_the_budget_allows() {
    within_budget("limit_req zone=all; limit_req_status 429;", 4);
}

/// Retry-After is on every answer, as `always` has it: on those that let in it means nothing.
fn waits_as_told(limits: &str, front: fn(Manners) -> Front) {
    let nginx = nginx("2r/s", &format!("{limits} add_header Retry-After 1 always;"));
    run(async {
        let outcomes = front(manners().build()).in_turn(&url(&nginx), 3).await;
        assert_all_well(&outcomes);
        let attempts = attempts(&nginx, 3 + repeated(&outcomes));
        assert!(repeated(&outcomes) <= 2, "a second is always enough: {attempts:?}");
        for pair in attempts.windows(2).filter(|pair| pair[0].status != 200) {
            assert!(pair[1].from + 2 >= pair[0].to + 1000, "{attempts:?}");
        }
        let told = outcomes.iter().filter(|it| !it.report.waited_for(Why::RetryAfter).is_zero());
        assert_eq!(told.count(), repeated(&outcomes), "nobody waits after a 200: {outcomes:?}");
    });
}

#[test]
fn retry_after_on_503_is_waited_for() {
    waits_as_told("limit_req zone=all;", Front::reqwest);
}

#[test]
fn retry_after_on_429_is_waited_for() {
    waits_as_told("limit_req zone=all; limit_req_status 429;", Front::tower);
}
