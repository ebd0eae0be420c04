//! nginx with `limit_req`, which turns away without a word, unless it is told to say one.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use dashpot_client::{GaveUp, Manners, Pace, Why};
use dashpot_testkit::process::{TemporaryDirectory, free_port, start, until};

use super::support::{Front, PATIENCE, assert_all_well, manners, of_the_system, repeated, run};

struct Nginx {
    process: Child,
    address: SocketAddr,
    // Last: the process is gone when it is removed.
    directory: TemporaryDirectory,
}

/// An attempt, as nginx saw it: by its clock, in milliseconds.
#[derive(Debug)]
struct Attempt {
    status: u16,
    from: u64,
    to: u64,
}

impl Nginx {
    /// With this rate, and these lines where it is limited.
    fn start(rate: &str, limits: &str) -> Self {
        // Between being found free and being used, a port may be taken: then another.
        let started = (0..5).find_map(|_| Self::try_start(rate, limits));
        started.expect("nginx starts")
    }

    fn try_start(rate: &str, limits: &str) -> Option<Self> {
        let directory = TemporaryDirectory::new();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let place = |name: &str| directory.path().join(name).display().to_string();
        let mut text = format!("pid {};\nevents {{ worker_connections 256; }}\n", place("pid"));
        text += "http {\nlog_format attempt '$status $msec $request_time';\n";
        text += &format!("access_log {} attempt;\n", place("attempts"));
        // The places for files that were compiled in are root's.
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            text += &format!("{kind}_temp_path {};\n", place(kind));
        }
        text += &format!("limit_req_zone $server_name zone=all:1m rate={rate};\n");
        text += &format!("server {{\nlisten {address};\nserver_name localhost;\n");
        // What `return` answers is not limited; what has contents is.
        text += &format!("location / {{\n{limits}\nempty_gif;\n}}\n}}\n}}\n");
        fs::write(directory.path().join("nginx.conf"), text).unwrap();
        let process = start(&of_the_system("nginx"), |command| {
            // One process, so that there is nobody else to be killed.
            command.args(["-e", "stderr", "-c", &place("nginx.conf"), "-p", &place("")]);
            command.args(["-g", "daemon off; master_process off;"]);
            let log = File::create(directory.path().join("log")).unwrap();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        });
        let mut nginx = Self { process, address, directory };
        let is_ready = until("nginx to listen", PATIENCE, || {
            if TcpStream::connect(address).is_ok() {
                return Some(true);
            }
            nginx.process.try_wait().unwrap().map(|_| false)
        });
        let log = fs::read_to_string(nginx.directory.path().join("log")).unwrap_or_default();
        eprint!("{log}");
        is_ready.then_some(nginx)
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// What came, once it is as many: nginx writes it down after it answered.
    fn attempts(&self, count: usize) -> Vec<Attempt> {
        let file = self.directory.path().join("attempts");
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
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn denials(attempts: &[Attempt]) -> usize {
    attempts.iter().filter(|attempt| attempt.status != 200).count()
}

/// All calls are let in at once, and none is turned away: the pace is what keeps them.
fn paced(pace: Pace, limits: &str, front: fn(Manners) -> Front) {
    let nginx = Nginx::start("20r/s", limits);
    run(async {
        let outcomes = front(manners().pace(pace).build()).at_once(&nginx.url(), 25).await;
        assert_all_well(&outcomes);
        let attempts = nginx.attempts(25);
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
    let nginx = Nginx::start("50r/s", limits);
    let (base, cap) = (Duration::from_millis(200), Duration::from_secs(1));
    let manners = manners().backoff(base, cap).build();
    run(async {
        let outcomes = front(manners).in_turn(&nginx.url(), 8).await;
        assert_all_well(&outcomes);
        let attempts = nginx.attempts(8 + repeated(&outcomes));
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
    let nginx = Nginx::start("1r/m", limits);
    let short = Duration::from_millis(5);
    let manners = manners().backoff(short, 2 * short).build();
    run(async {
        let outcomes = Front::reqwest(manners).in_turn(&nginx.url(), 20).await;
        let well = outcomes.iter().filter(|outcome| outcome.status == 200).count();
        assert_eq!(well, 1);
        // Ten a minute, and a fifth of all calls.
        assert!(repeated(&outcomes) <= 10 + 20 / 5, "{outcomes:?}");
        let attempts = nginx.attempts(20 + repeated(&outcomes));
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
    let nginx = Nginx::start("2r/s", &format!("{limits} add_header Retry-After 1 always;"));
    run(async {
        let outcomes = front(manners().build()).in_turn(&nginx.url(), 3).await;
        assert_all_well(&outcomes);
        let attempts = nginx.attempts(3 + repeated(&outcomes));
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
