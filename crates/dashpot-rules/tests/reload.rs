//! Rules that are read again: every way of replacing a file, and never a moment without rules.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use std::{fs, thread};

use dashpot::MemoryStore;
use dashpot_rules::{Facts, LiveRules, LoadError, Reload, RuleSet, Watch, diff};
use dashpot_testkit::block_on;
use insta::assert_snapshot;

use crate::common::temp_dir::TempDir;

const EVERY: Duration = Duration::from_millis(20);

/// Long enough for a busy machine; nobody waits for it if all is well.
const PATIENCE: Duration = Duration::from_secs(10);

type Reports = Receiver<Result<Reload, LoadError>>;

fn watch(path: &Path) -> (LiveRules, Watch, Reports) {
    watch_every(EVERY, path)
}

fn watch_every(every: Duration, path: &Path) -> (LiveRules, Watch, Reports) {
    let (send, reports) = channel();
    // Nobody listens any more when a test is over.
    let report = move |result| drop(send.send(result));
    let (rules, watch) = LiveRules::watch_every(path, every, report).unwrap();
    (rules, watch, reports)
}

fn next(reports: &Reports) -> Result<Reload, LoadError> {
    reports.recv_timeout(PATIENCE).expect("a change is noticed")
}

fn rule(limit: &str) -> String {
    format!("[[rule]]\nname = 'api'\nby = 'user'\nlimits = '{limit}'\n")
}

fn limit(rules: &LiveRules) -> String {
    rules.current().rules()[0].policies().next().unwrap().quota().to_string()
}

#[test]
fn a_file_that_is_written_again_is_read_again() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/s"));
    let (rules, _watch, reports) = watch(&file);
    assert_eq!((limit(&rules).as_str(), rules.generation()), ("5/s", 1));
    // In place. A busy machine may pause between emptying it and writing it; that is an error, then all is well.
    fs::write(&file, rule("6/s")).unwrap();
    let reload = next(&reports).or_else(|_| next(&reports)).unwrap();
    assert_eq!(reload.generation, 2);
    assert_eq!(reload.changes, ["rule `api`: limits 5/s → 6/s; counts go on"]);
    assert_eq!((limit(&rules).as_str(), rules.generation()), ("6/s", 2));
}

#[test]
fn a_file_that_is_renamed_over_is_read_again() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/s"));
    let (rules, _watch, reports) = watch(&file);
    for count in 6..9 {
        let new = dir.write("rules.toml.new", &rule(&format!("{count}/s")));
        fs::rename(new, &file).unwrap();
        next(&reports).unwrap();
        assert_eq!(limit(&rules), format!("{count}/s"));
    }
    assert_eq!(rules.generation(), 4);
}

/// As Kubernetes does it: the file is a link through `..data`, which is swapped.
#[cfg(unix)]
#[test]
fn a_swapped_config_map_is_read_again() {
    use std::os::unix::fs::symlink;

    let dir = TempDir::new();
    let publish = |stamp: &str, text: &str| {
        let version = dir.path().join(stamp);
        fs::create_dir(&version).unwrap();
        fs::write(version.join("rules.toml"), text).unwrap();
        symlink(stamp, dir.path().join("..data_tmp")).unwrap();
        fs::rename(dir.path().join("..data_tmp"), dir.path().join("..data")).unwrap();
    };
    publish("..2024_01_01", &rule("5/s"));
    symlink("..data/rules.toml", dir.path().join("rules.toml")).unwrap();

    // By the file, and by the directory it is in.
    let (by_file, _one, file_reports) = watch(&dir.path().join("rules.toml"));
    let (by_directory, _two, directory_reports) = watch(dir.path());
    publish("..2024_01_02", &rule("6/s"));
    fs::remove_dir_all(dir.path().join("..2024_01_01")).unwrap();
    next(&file_reports).unwrap();
    next(&directory_reports).unwrap();
    assert_eq!((limit(&by_file).as_str(), limit(&by_directory).as_str()), ("6/s", "6/s"));
}

#[test]
fn a_broken_file_is_told_with_its_place_and_the_last_good_rules_stay() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/s"));
    let (rules, _watch, reports) = watch(&file);
    dir.write("rules.toml", &rule("5/fortnight"));
    let told = next(&reports).expect_err("there is no such unit").to_string();
    let place = format!("{}:4:13: error: `fortnight`", file.display());
    assert!(told.starts_with(&place), "{told}");
    assert_eq!((limit(&rules).as_str(), rules.generation()), ("5/s", 1));
    // Said once.
    assert_eq!(reports.recv_timeout(EVERY * 10).err(), Some(RecvTimeoutError::Timeout));

    dir.write("rules.toml", &rule("7/s"));
    assert_eq!(next(&reports).unwrap().generation, 2);
    assert_eq!(limit(&rules), "7/s");
}

#[test]
fn a_file_that_comes_back_as_it_was_is_no_news_but_for_the_error() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/s"));
    let (rules, _watch, reports) = watch(&file);
    fs::remove_file(&file).unwrap();
    assert!(matches!(next(&reports), Err(LoadError::Read { .. })));
    assert_eq!(limit(&rules), "5/s");
    dir.write("rules.toml", &rule("5/s"));
    assert_eq!(next(&reports).unwrap().changes, [""; 0]);
}

#[test]
fn a_file_that_is_only_touched_is_not_read_again() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/s"));
    let (_rules, _watch, reports) = watch(&file);
    dir.write("rules.toml", &rule("5/s"));
    assert_eq!(reports.recv_timeout(EVERY * 10).err(), Some(RecvTimeoutError::Timeout));
}

#[test]
fn files_that_come_and_go_in_a_directory_are_noticed() {
    let dir = TempDir::new();
    dir.write("10.toml", &rule("5/s"));
    let (rules, _watch, reports) = watch(dir.path());
    let other = dir.write("20.toml", &rule("5/s").replace("api", "other"));
    next(&reports).unwrap();
    assert_eq!(rules.current().rules().len(), 2);
    fs::remove_file(other).unwrap();
    next(&reports).unwrap();
    assert_eq!(rules.current().rules().len(), 1);
    // What is no rule file is none of its business.
    dir.write("README", "hello");
    assert_eq!(reports.recv_timeout(EVERY * 5).err(), Some(RecvTimeoutError::Timeout));
}

#[test]
fn a_file_that_is_cut_short_to_nothing_leaves_the_last_rules() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/s"));
    let (rules, _watch, reports) = watch(&file);
    dir.write("rules.toml", "# nothing\n");
    let told = next(&reports).expect_err("a file without rules looks like half of one");
    assert!(matches!(told, LoadError::Emptied(_)), "{told}");
    assert!(told.to_string().contains("the last ones stay"), "{told}");
    assert_eq!(limit(&rules), "5/s");
    assert_eq!(reports.recv_timeout(EVERY * 10).err(), Some(RecvTimeoutError::Timeout), "once");
    dir.write("rules.toml", &rule("unlimited"));
    assert_eq!(next(&reports).unwrap().generation, 2);
    assert_eq!(limit(&rules), "unlimited");
}

#[test]
fn a_file_that_never_had_rules_may_change() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", "");
    let (_rules, _watch, reports) = watch(&file);
    dir.write("rules.toml", "[headers]\njitter = '5s'\n");
    assert_eq!(next(&reports).unwrap().changes, ["[headers] is different"]);
}

#[test]
fn a_key_file_beside_the_rules_is_watched() {
    let dir = TempDir::new();
    let key = |digit: &str| format!("{} = {{ user = 'alice' }}\n", digit.repeat(64));
    // It comes before the rules by name, and is named in a roundabout way.
    dir.write("keys.toml", &key("a"));
    dir.write("rules.toml", &(KEYS.replace("'keys'", "'./keys.toml'") + &rule("5/s")));
    let (rules, _watch, reports) = watch(dir.path());
    assert_eq!(reports.recv_timeout(EVERY * 10).err(), Some(RecvTimeoutError::Timeout), "no news");
    dir.write("keys.toml", &(key("a") + &key("b")));
    assert_eq!(next(&reports).unwrap().changes, ["[identity] is different"]);
    assert_eq!(rules.current().identity().keys.len(), 2);
    assert_eq!(reports.recv_timeout(EVERY * 10).err(), Some(RecvTimeoutError::Timeout), "once");
}

const KEYS: &str = "[identity]\napi_key = 'header:x-api-key'\napi_keys_file = 'keys'\n";

#[test]
fn a_change_of_the_key_file_is_noticed() {
    let dir = TempDir::new();
    let key = |digit: &str| format!("{} = {{ user = 'alice' }}\n", digit.repeat(64));
    dir.write("keys", &key("a"));
    let file = dir.write("rules.toml", &(KEYS.to_owned() + &rule("5/s")));
    let (rules, _watch, reports) = watch(&file);
    assert_eq!(rules.current().identity().keys.len(), 1);
    dir.write("keys", &(key("a") + &key("b")));
    assert_eq!(next(&reports).unwrap().changes, ["[identity] is different"]);
    assert_eq!(rules.current().identity().keys.len(), 2);
    // Broken, then whole again.
    dir.write("keys", "sk_live = {}");
    assert!(next(&reports).is_err());
    assert_eq!(rules.current().identity().keys.len(), 2);
    dir.write("keys", &key("c"));
    next(&reports).unwrap();
    assert_eq!(rules.current().identity().keys.len(), 1);
}

#[test]
fn a_key_file_that_comes_after_its_rules_is_noticed() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/s"));
    let (rules, _watch, reports) = watch(&file);
    dir.write("rules.toml", &(KEYS.to_owned() + &rule("5/s")));
    assert!(next(&reports).is_err(), "it is not there yet");
    dir.write("keys", &format!("{} = {{}}\n", "a".repeat(64)));
    next(&reports).unwrap();
    assert_eq!(rules.current().identity().keys.len(), 1);
}

#[test]
fn nobody_ever_runs_on_half_a_file() {
    let dir = TempDir::new();
    let many = |count: u32| {
        let rule = |n: u32| format!("[[rule]]\nname = 'r{n}'\nlimits = '{count}/s'\n");
        (0..50).map(rule).collect::<String>()
    };
    let file = dir.write("rules.toml", &many(1));
    // Far slower than the pause below, also where threads have to wait for their turn.
    let (rules, watch, reports) = watch_every(Duration::from_millis(150), &file);
    let done = Arc::new(AtomicBool::new(false));
    let observer = thread::spawn({
        let (rules, done) = (rules.clone(), done.clone());
        move || {
            while !done.load(Ordering::SeqCst) {
                let current = rules.current();
                assert_eq!(current.rules().len(), 50);
                let limits: Vec<_> =
                    current.rules().iter().flat_map(|rule| rule.policies()).collect();
                assert!(limits.iter().all(|policy| policy.quota() == limits[0].quota()));
                thread::yield_now();
            }
        }
    });
    for count in 2..6 {
        // As an editor does: emptied first, then written, with a pause in between.
        fs::write(&file, "").unwrap();
        thread::sleep(Duration::from_millis(3));
        fs::write(&file, many(count)).unwrap();
        while next(&reports).is_ok_and(|_| limit(&rules) != format!("{count}/s")) {}
    }
    done.store(true, Ordering::SeqCst);
    observer.join().unwrap();
    drop(watch);
}

#[test]
fn nothing_is_noticed_when_the_watch_is_over() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/s"));
    let (rules, watch, reports) = watch(&file);
    drop(watch);
    dir.write("rules.toml", &rule("6/s"));
    assert_eq!(reports.recv_timeout(PATIENCE).err(), Some(RecvTimeoutError::Disconnected));
    assert_eq!(limit(&rules), "5/s");
}

#[test]
fn what_cannot_be_loaded_at_first_is_an_error() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &rule("5/x"));
    assert!(matches!(LiveRules::watch(&file, |_| {}), Err(LoadError::Rules(_))));
}

/// How many pass now.
fn passes(rules: &LiveRules, store: &MemoryStore) -> usize {
    let request = Facts::new().user("alice");
    let ask = |_: &i32| {
        let current = rules.current();
        let plan = current.select(&request).plan(&request);
        block_on(plan.decide(store, store)).refusal().is_none()
    };
    (0..100).take_while(ask).count()
}

#[test]
fn counts_go_on_under_new_rules_by_name() {
    let store = MemoryStore::with_clock(dashpot::ManualClock::default());
    let parse = |file: &str| RuleSet::parse(file).unwrap();
    let rules = LiveRules::new(parse(&rule("5/min")));
    assert_eq!(passes(&rules, &store), 5);
    let tally = || rules.current().rules()[0].tally().denied();
    assert_eq!(tally(), 1);

    rules.replace(parse(&rule("8/min")));
    assert_eq!(passes(&rules, &store), 3, "five of eight are used");
    assert_eq!(tally(), 2, "what was counted about the rule goes on, too");

    let reload = rules.replace(parse(&rule("8/h")));
    assert_eq!(
        reload.changes,
        ["rule `api`: limits 8/min → 8/h; what has another window or algorithm is counted anew"]
    );
    assert_eq!(passes(&rules, &store), 8);

    rules.replace(parse(&rule("8/h").replace("api", "renamed")));
    assert_eq!(passes(&rules, &store), 8, "another name is another rule");
    assert_eq!(rules.generation(), 4);
}

#[test]
fn a_request_is_judged_by_one_set_of_rules() {
    let rules = LiveRules::new(RuleSet::parse(&rule("5/s")).unwrap());
    let (before, clone) = (rules.current(), rules.clone());
    rules.replace(RuleSet::parse(&rule("6/s")).unwrap());
    assert_eq!(before.rules()[0].policies().next().unwrap().quota().to_string(), "5/s");
    assert_eq!(limit(&clone), "6/s", "clones are the same rules");
}

fn changes(before: &str, after: &str) -> String {
    let parse = |file: &str| RuleSet::parse(file).unwrap_or_else(|errors| panic!("{errors}"));
    diff(&parse(before), &parse(after)).join("\n")
}

#[test]
fn nothing_is_different_from_itself() {
    let file = include_str!("common/example.toml").replace("api_keys_file = \"keys.toml\"", "");
    assert_eq!(changes(&file, &file), "");
    assert_eq!(changes(&file, &format!("# a comment\n{file}")), "");
}

#[test]
fn differences_are_told_in_words() {
    let before = "
[store]
url = 'redis://:hunter2@a'
[memory]
max_keys = 5
[identity]
default_tier = 'free'
[allow]
ip = '10.0.0.1'
[[priority]]
name = 'hooks'
match.path = '/hooks/*'
weight = 'unlimited'
[[priority]]
name = 'batch'
match.path = '/batch'
weight = 0.5
[[rule]]
name = 'gone'
match = { method = ['POST', 'PUT'], path = '/x' }
by = ['ip', 'path']
limits = ['5/s', '100/day']
[[rule]]
name = 'tiers'
by = 'user'
tiers.free = '5/s'
tiers.pro = '50/s'
[[rule]]
name = 'keys'
by = 'ip'
limits = '5/s'
[[rule]]
name = 'window'
by = 'ip'
limits = '5/s'
[[rule]]
name = 'same'
limits = '5/s'
[[rule]]
name = 'answers'
limits = '5/s'
shadow = true
";
    let after = "
[store]
url = 'redis://:hunter3@a'
[headers]
jitter = '5s'
[identity]
default_tier = 'pro'
[[priority]]
name = 'batch'
match.path = '/batch'
weight = 0.25
[[priority]]
name = 'pay'
match.path = '/pay'
weight = 10
[[rule]]
name = 'same'
limits = '5/s'
[[rule]]
name = 'tiers'
by = 'user'
tiers.free = '6/s'
tiers.pro = '50/s'
[[rule]]
name = 'keys'
by = 'user | ip'
limits = '5/s'
[[rule]]
name = 'window'
by = 'ip'
limits = '5/min'
algorithm = 'sliding-window'
[[rule]]
name = 'new'
match.host = '*.example.com'
limits = '10 concurrent'
[[rule]]
name = 'answers'
limits = '5/s'
on_deny = { status = 403, body = 'no' }
charge_on = [200, 201]
enforce_percent = 5
on_store_error = 'deny'
absent = 'skip'
cost = 2
[block]
user = 'mallory'
";
    let told = changes(before, after);
    assert!(!told.contains("hunter"), "{told}");
    assert_snapshot!(told, @r#"
    rule `gone` is gone: POST or PUT /x, ip and path, 5/s and 100/day
    rule `tiers`: limits free: 5/s; pro: 50/s → free: 6/s; pro: 50/s; counts go on
    rule `keys`: by ip → user | ip; keys are cut anew
    rule `window`: limits 5/s → 5/min, algorithm token-bucket → sliding-window; what has another window or algorithm is counted anew
    rule `new` is new: on *.example.com, one counter for all, 10 concurrent
    rule `answers`: cost 1 → 2, settle at once → charged only on 200 or 201, enforced never (shadow) → for 5 of 100 keys, on_store_error local → deny, absent share → skip, on_deny 429 → 403 with "no"; counts go on
    priority `hooks` is gone: /hooks/*, weight unlimited
    priority `batch`: /batch, weight 0.5 → /batch, weight 0.25
    priority `pay` is new: /pay, weight 10
    [store] is different
    [memory] is different
    [identity] is different
    [headers] is different
    [allow] is different
    [block] is different
    "#);
}

#[test]
fn answers_are_told_in_words() {
    let file = |on_deny: &str| rule("5/s") + &format!("on_deny = {on_deny}\n");
    let told = |before: &str, after: &str| changes(&file(before), &file(after));
    let told_of = |text: &str| format!("rule `api`: on_deny {text}; counts go on");
    assert_eq!(told("{}", "{ redirect = '/captcha' }"), told_of("429 → 303 to /captcha"));
    let html = "{ status = 503, body = 'no', content_type = 'text/html' }";
    assert_eq!(told("{}", html), told_of("429 → 503 with \"no\" as text/html"));
    // Long ones are not shown, and still told apart.
    let long = |letter: &str| format!("{{ body = '{}' }}", letter.repeat(500));
    let told = told(&long("a"), &long("b"));
    assert!(told.starts_with("rule `api`: on_deny 429 with 500 bytes ("), "{told}");
    assert!(told.len() < 120, "{told}");
}

#[cfg(feature = "jwt")]
#[test]
fn another_key_for_tokens_is_told() {
    let dir = TempDir::new();
    dir.write("key", &"k".repeat(64));
    let load = |issuer: &str| {
        let jwt = "[identity.jwt]\nalgorithm = 'HS256'\nkey_file = 'key'\nissuer =";
        RuleSet::load(dir.write("rules.toml", &format!("{jwt} '{issuer}'"))).unwrap()
    };
    assert_eq!(diff(&load("one"), &load("two")), ["[identity] is different"]);
}
