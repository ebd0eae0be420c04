//! Rules that change while it runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Answer, Client};
use crate::service::{Directory, Service, until};

const REQUEST: &str = r#"{"request":{"path":"/","ip":"203.0.113.7"}}"#;
/// Files are looked at twice a second; the rest is for a machine that has other things to do.
const SEEN: Duration = Duration::from_secs(10);

fn rules(limit: &str) -> String {
    format!("[[rule]]\nname = 'all'\nby = ['ip']\nlimits = ['{limit}']\n")
}

fn limit(answer: &Answer) -> u64 {
    answer.json()["policies"][0]["limit"].as_u64().unwrap()
}

/// Looks, and takes nothing.
fn now(client: &mut Client) -> Answer {
    client.check(r#"{"request":{"path":"/","ip":"203.0.113.7"},"cost":0}"#)
}

fn until_limit(client: &mut Client, wanted: u64) -> Answer {
    until("the new rules", SEEN, || Some(now(client)).filter(|answer| limit(answer) == wanted))
}

#[test]
fn a_file_that_changes_is_read_and_what_was_used_stays_used() {
    let home = Directory::new();
    let service = Service::with_rules(&home, &rules("10/day"), &[]);
    let mut client = service.client();
    for _ in 0..10 {
        assert!(client.check(REQUEST).allowed());
    }
    assert!(!client.check(REQUEST).allowed());

    let begun = Instant::now();
    home.write("rules.toml", &rules("15/day"));
    assert_eq!(until_limit(&mut client, 15).remaining(), 5, "ten are used");
    let took = begun.elapsed();
    println!("used after {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    for _ in 0..5 {
        assert!(client.check(REQUEST).allowed());
    }
    assert!(!client.check(REQUEST).allowed());

    // By another file in its place, and to less than was used.
    home.replace("rules.toml", &rules("5/day"));
    assert_eq!(until_limit(&mut client, 5).remaining(), 0);
    assert!(!client.check(REQUEST).allowed());
    assert_eq!(service.metric("dashpot_rules_generation"), 3.0);
    assert_eq!(service.metric("dashpot_reloads_total"), 2.0);
    assert_eq!(service.metric("dashpot_failed_reloads_total"), 0.0);
    assert_eq!(client.get("/v1/rules").json()["generation"], 3);
}

#[test]
fn told_to_it_reads_at_once() {
    let home = Directory::new();
    let service = Service::with_rules(&home, &rules("10/day"), &[]);
    let mut client = service.client();
    let mut quickest = SEEN;
    for count in 11..19 {
        home.replace("rules.toml", &rules(&format!("{count}/day")));
        let begun = Instant::now();
        service.signal("HUP");
        until_limit(&mut client, count);
        if count > 11 {
            quickest = quickest.min(begun.elapsed());
        }
    }
    println!("the quickest after {quickest:?}");
    // Whoever looks twice a second, and has just looked, is half a second late. Only the first may
    // be quick by chance.
    assert!(quickest < Duration::from_millis(250), "{quickest:?}");
    // Nothing new is no mistake.
    service.signal("HUP");
    assert_eq!(limit(&now(&mut client)), 18);
}

#[test]
fn asked_to_over_http_it_answers_when_it_is_done() {
    let home = Directory::new();
    let service = Service::with_rules(&home, &rules("10/day"), &[]);
    let mut client = service.client();
    for count in 20..30 {
        home.replace("rules.toml", &rules(&format!("{count}/day")));
        let answer = client.post("/v1/rules/reload", "");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!answer.json()["changes"].is_null(), "{answer:?}");
        assert_eq!(limit(&now(&mut client)), count);
    }
    home.replace("rules.toml", &rules("5/fortnight"));
    let answer = client.post("/v1/rules/reload", "");
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("rules.toml:4:14") || answer.body.contains("4:14"), "{answer:?}");
    assert_eq!(limit(&now(&mut client)), 29);
}

/// What it was told to read in between counts, and not what it found when it last looked by itself.
#[test]
fn a_file_that_is_put_back_soon_is_a_change() {
    let home = Directory::new();
    let service = Service::with_rules(&home, &rules("10/day"), &[]);
    let mut client = service.client();
    for _ in 0..3 {
        home.replace("rules.toml", &rules("20/day"));
        assert_eq!(client.post("/v1/rules/reload", "").status, 200);
        assert_eq!(limit(&now(&mut client)), 20);
        home.replace("rules.toml", &rules("10/day"));
        until_limit(&mut client, 10);
    }
}

#[test]
fn links_that_are_swapped_are_a_change() {
    let home = Directory::new();
    let mounted = home.path().join("mounted");
    fs::create_dir(&mounted).unwrap();
    // As a ConfigMap is mounted: the file is a link into a link that is replaced.
    let version = |name: &str, text: &str| {
        fs::create_dir(mounted.join(name)).unwrap();
        fs::write(mounted.join(name).join("rules.toml"), text).unwrap();
        let new = mounted.join("..data_tmp");
        symlink(name, &new).unwrap();
        fs::rename(new, mounted.join("..data")).unwrap();
    };
    version("..one", &rules("10/day"));
    symlink("..data/rules.toml", mounted.join("rules.toml")).unwrap();
    let service = Service::start_in(home.path(), &["--config", "mounted"]);
    let mut client = service.client();
    assert!(client.check(REQUEST).allowed());
    version("..two", &rules("12/day"));
    fs::remove_dir_all(mounted.join("..one")).unwrap();
    assert_eq!(until_limit(&mut client, 12).remaining(), 11, "and what was used stays used");
    // The same of a file that is named.
    let service = Service::start_in(home.path(), &["--config", "mounted/rules.toml"]);
    let mut client = service.client();
    assert_eq!(limit(&now(&mut client)), 12);
    version("..three", &rules("13/day"));
    until_limit(&mut client, 13);
}

/// Two rules change together. Nobody may see one of them old and the other new.
#[test]
fn under_load_no_request_fails_or_sees_a_mixture() {
    let both = |count: u32| {
        let rule = |name| format!("[[rule]]\nname = '{name}'\nlimits = ['{count}M/day']\n");
        rule("first") + &rule("second")
    };
    let home = Directory::new();
    let service = Service::with_rules(&home, &both(1), &[]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = || {
            let mut client = service.client();
            let (mut asked, mut seen) = (0, 0);
            let mut last = 0;
            while !over.load(Ordering::Relaxed) {
                let answer = client.check(REQUEST);
                assert!(answer.allowed(), "{answer:?}");
                let answer = answer.json();
                let limits = [0, 1].map(|nth| answer["policies"][nth]["limit"].as_u64().unwrap());
                assert_eq!(limits[0], limits[1], "{answer}");
                assert_eq!(answer["policies"].as_array().unwrap().len(), 2);
                assert!(limits[0] >= last, "back to old rules: {answer}");
                seen += usize::from(limits[0] != last);
                last = limits[0];
                asked += 1;
            }
            (asked, seen)
        };
        let loads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
        let begun = Instant::now();
        // Fewer will do on a machine that has no time for more.
        let enough = |count: &u32| *count < 12 || begun.elapsed() < Duration::from_secs(6);
        let changed = (2..32).take_while(enough).try_for_each(|count| {
            home.replace("rules.toml", &both(count));
            match count % 2 {
                0 => service.signal("HUP"),
                _ => match service.client().post("/v1/rules/reload", "") {
                    answer if answer.status == 200 => {}
                    answer => return Err(answer),
                },
            }
            thread::sleep(Duration::from_millis(50));
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        changed.unwrap();
        let seen: Vec<(usize, usize)> =
            loads.into_iter().map(|load| load.join().unwrap()).collect();
        println!("asked, and rules seen: {seen:?}");
        assert!(seen.iter().all(|(asked, seen)| *asked > 30 && *seen > 5), "{seen:?}");
    });
}
