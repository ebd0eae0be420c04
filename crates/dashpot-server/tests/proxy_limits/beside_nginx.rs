//! Each line about `limit_req` of docs/from-nginx.md beside nginx itself: the same crowd, the same outcome.

use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::Nginx;

use crate::backend::Backend;
use crate::crowd::{Outcome, crowd};
use crate::nginx::nginx;
use crate::proxy::Proxy;

const PAGE: &str = include_str!("../../../../docs/from-nginx.md");
const TENTH: Duration = Duration::from_millis(100);
const ZONE: &str = "limit_req_zone $binary_remote_addr zone=a:10m rate=10r/s";

/// A line of the page, which has to be there as it is tried here.
#[track_caller]
fn line(nginx: &str, dashpot: &str) {
    let wanted = |line: &str| {
        let told = line.strip_prefix("| ")?.split_once(" | ")?;
        (told.0.contains(nginx) && told.1.contains(dashpot)).then_some(())
    };
    assert!(PAGE.lines().any(|line| wanted(line).is_some()), "no line `{nginx}` | `{dashpot}`");
}

/// A rule by address of ten a second.
fn rule(rest: &str) -> String {
    format!("[[rule]]\nname = 'a'\nby = ['ip']\n{rest}\n")
}

/// Both, asked by the same crowd at the same time; and once more after a while.
struct Pair {
    nginx: (Nginx, Backend),
    dashpot: (Proxy, Backend),
}

impl Pair {
    fn start(location: &str, rules: &str) -> Self {
        let zones = format!("{ZONE};\nlimit_req_zone $server_name zone=b:1m rate=20r/s;");
        line(ZONE, "`limits = [\"10/s\"]`");
        line("limit_req_status 429", "the usual");
        let server = format!("location / {{ {location}\nlimit_req_status 429; PASS }}");
        let (one, other) = (Backend::start(), Backend::start());
        let nginx = nginx(&one, &zones, &server);
        let dashpot = Proxy::by(&other, rules);
        Self { nginx: (nginx, one), dashpot: (dashpot, other) }
    }

    fn crowd(&self, count: usize) -> [(&'static str, Outcome); 2] {
        let (nginx, dashpot) = (&self.nginx, &self.dashpot);
        thread::scope(|scope| {
            let one = scope.spawn(|| crowd(nginx.0.address(), &nginx.1, count));
            let other = crowd(dashpot.0.address, &dashpot.1, count);
            [("nginx", one.join().unwrap()), ("dashpot", other)]
        })
    }

    /// Forty at once: so many are admitted, so many of these at once, by both.
    #[track_caller]
    fn assert_both(&self, admitted: usize, at_once: usize) {
        let outcomes = self.crowd(40);
        for (who, outcome) in &outcomes {
            outcome.assert_is(who, admitted, at_once, TENTH);
        }
        let [(_, nginx), (_, dashpot)] = &outcomes;
        let told = format!("{nginx:?} {dashpot:?}");
        if nginx.judged < TENTH && dashpot.judged < TENTH {
            assert_eq!(nginx.denied, dashpot.denied, "{told}");
            assert_eq!(nginx.undelayed(TENTH), dashpot.undelayed(TENTH), "{told}");
        }
        for (one, other) in nginx.departures.iter().zip(&dashpot.departures) {
            let apart = one.abs_diff(*other);
            assert!(apart < Duration::from_millis(300), "{apart:?} apart: {told}");
        }
    }
}

#[test]
fn without_a_burst_one_passes() {
    line("`limit_req zone=a`", "`limits = [\"10/s burst 1\"]`");
    let pair = Pair::start("limit_req zone=a;", &rule("limits = ['10/s burst 1']"));
    pair.assert_both(1, 1);
}

#[test]
fn with_a_burst_they_wait() {
    line("`limit_req zone=a burst=20`", "`algorithm = \"leaky-bucket\"`, `queue = 20` |");
    let rules = rule("limits = ['10/s']\nalgorithm = 'leaky-bucket'\nqueue = 20");
    Pair::start("limit_req zone=a burst=20;", &rules).assert_both(21, 1);
}

#[test]
fn with_nodelay_they_do_not() {
    let written = "`queue = 20`, `undelayed = 20`; or `limits = [\"10/s burst 21\"]`";
    line("`limit_req zone=a burst=20 nodelay`", written);
    let queue = "limits = ['10/s']\nalgorithm = 'leaky-bucket'\nqueue = 20\nundelayed = 20";
    for rules in [queue, "limits = ['10/s burst 21']"] {
        let pair = Pair::start("limit_req zone=a burst=20 nodelay;", &rule(rules));
        let begun = Instant::now();
        pair.assert_both(21, 21);
        // A second later there is room for as many as a second lets pass, and no more.
        thread::sleep(Duration::from_millis(1020));
        for (who, outcome) in pair.crowd(40) {
            let most = (begun.elapsed().as_millis() / 100 + 1) as usize;
            assert!((10..=most).contains(&outcome.admitted()), "{most}; {who}: {outcome:?}");
        }
    }
}

#[test]
fn with_delay_some_of_them_do_not() {
    let written = "`algorithm = \"leaky-bucket\"`, `queue = 20`, `undelayed = 8`";
    line("`limit_req zone=a burst=20 delay=8`", written);
    let rules = "limits = ['10/s']\nalgorithm = 'leaky-bucket'\nqueue = 20\nundelayed = 8";
    Pair::start("limit_req zone=a burst=20 delay=8;", &rule(rules)).assert_both(21, 9);
}

#[test]
fn of_two_the_stricter_and_the_slower_counts() {
    line("two `limit_req` in one `location`", "two rules that match it");
    let second = |rest: &str| format!("[[rule]]\nname = 'b'\nlimits = ['20/s']\n{rest}\n");
    let queue = "algorithm = 'leaky-bucket'\nqueue =";
    // The second has fewer places, and the first is slower.
    let rules = rule(&format!("limits = ['10/s']\n{queue} 20")) + &second(&format!("{queue} 7"));
    let location = "limit_req zone=a burst=20; limit_req zone=b burst=7;";
    Pair::start(location, &rules).assert_both(8, 1);
    // Neither makes anybody wait.
    let undelayed = format!("{queue} 7\nundelayed = 7");
    let rules = rule("limits = ['10/s burst 21']") + &second(&undelayed);
    let location = "limit_req zone=a burst=20 nodelay; limit_req zone=b burst=7 nodelay;";
    Pair::start(location, &rules).assert_both(8, 8);
}

#[test]
fn a_dry_run_lets_all_pass_at_once() {
    line("limit_req_dry_run on", "`shadow = true`");
    for rest in
        ["limits = ['10/s burst 1']", "limits = ['10/s']\nalgorithm = 'leaky-bucket'\nqueue = 5"]
    {
        let location = "limit_req zone=a burst=5; limit_req_dry_run on;";
        let pair = Pair::start(location, &rule(&format!("{rest}\nshadow = true")));
        for (who, outcome) in pair.crowd(40) {
            assert_eq!(outcome.denied, 0, "{who}: {outcome:?}");
            let last = outcome.departures.last().unwrap();
            assert!(*last < Duration::from_millis(500), "{who}: {outcome:?}");
        }
    }
}

/// The whole example of the page, as it stands there.
#[test]
fn the_example() {
    let example = |kind| crate::page::block(PAGE, kind);
    let (one, other) = (Backend::start(), Backend::start());
    let text = example("nginx");
    let (http, server) = text.split_once("server {\n").unwrap();
    let server = server.trim_end().strip_suffix('}').unwrap();
    let server = crate::page::changed(server, "proxy_pass http://127.0.0.1:3000;", "PASS");
    let nginx = nginx(&one, http, &server.replace("location /api/", "location /"));
    let rules = example("toml").replace("/api/*", "/*");
    let dashpot = Proxy::by(&other, &rules);
    let outcomes = [
        ("nginx", crowd(nginx.address(), &one, 40)),
        ("dashpot", crowd(dashpot.address, &other, 40)),
    ];
    for (who, outcome) in outcomes {
        outcome.assert_is(who, 21, 9, TENTH);
    }
}
