//! What was wrong once.

use serde_json::json;

use crate::door::{Door, descriptor, request};
use crate::rpc::Call;
use crate::scene::{Scene, both, both_by_rules, home, refusal};
use crate::service;

const YAML: &str = "
domain: d
descriptors:
  - key: tried
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: user
    rate_limit: { unit: day, requests_per_unit: 5 }
";

/// Its time was told as if it were 1970.
#[test]
fn what_only_counts_is_told_when_its_window_ends() {
    both(YAML, &[], |scene| {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let answer = scene.hit("d", &[("tried", "v")]);
        let left = 86_400 - now % 86_400;
        let told = answer.status().reset.unwrap();
        // A day may have ended in between.
        assert!(told.abs_diff(left) <= 5 || told > 86_390 || left < 10, "{told} and {left}");
    });
}

/// Two descriptors of one limit were two policies of one name.
#[test]
fn a_name_is_told_once_and_is_the_one_that_is_closest() {
    both(YAML, &[], |scene| {
        scene.cost("d", &[("user", "ann")], 3).passes(2);
        let two = [descriptor(&[("user", "ben")]), descriptor(&[("user", "ann")])];
        let answer = scene.ask(&request("d", &two));
        assert_eq!(answer.left(), [4, 1]);
        assert_eq!(answer.header("ratelimit-policy"), Some("\"d.user\";q=5;w=86400"));
        assert!(answer.header("ratelimit").unwrap().starts_with("\"d.user\";r=1;"), "{answer:?}");
    });
    let rules = "[[rule]]\nname = 'all'\nlimits = '5/day'";
    both_by_rules(rules, "domain: other", |scene| {
        let two = [descriptor(&[("a", "1")]), descriptor(&[("b", "2")])];
        let answer = scene.ask(&request("d", &two));
        assert_eq!(answer.left(), [4, 4]);
        assert_eq!(answer.header("ratelimit-policy"), Some("\"all\";q=5;w=86400"));
    });
}

/// Whoever asks could have keys of any length kept.
#[test]
fn long_values_are_told_apart_and_not_kept() {
    both(YAML, &[], |scene| {
        let (one, other) = ("x".repeat(5000), format!("{}y", "x".repeat(4999)));
        scene.apart("d", &[("user", &one)], &[("user", &other)]);
        let denied = scene.cost("d", &[("user", &one)], 9);
        assert!(denied.over);
        let top = scene.service.client().get("/v1/keys/top").body;
        assert!(!top.contains("xxxxx") && top.contains("sha256:"), "{top}");
    });
}

/// There was no way to see whether a file is right without serving by it.
#[test]
fn a_file_can_be_checked_before() {
    let home = home(&[("limits.yaml", YAML)]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(["rules", "check", "--envoy", "config"]).current_dir(home.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "config: 2 limits\n");
    home.write("config/limits.yaml", "domain: d\ndescriptors:\n  - kee: k\n");
    let (status, told) = service::ended(command);
    assert_eq!(status, Some(2));
    assert!(told.starts_with("config/limits.yaml:3:5: unknown field `kee`"), "{told}");
    assert!(refusal(&[("limits.yaml", "domain: ''")], &[]).contains(":1:9: "));
}

/// What rules count once was given back once for each descriptor, and without the rule's cost.
#[test]
fn what_is_given_back_is_what_was_taken() {
    let rules = "[[rule]]\nname = 'r'\nby = 'fact:u'\nlimits = '20/day'\ncost = 2";
    let scene = Scene::with_rules(rules, "domain: other", &[]).by(Door::Json);
    let one = descriptor(&[("u", "ann"), ("v", "1")]);
    let other = descriptor(&[("u", "ann"), ("v", "2")]);
    let take = |hits: u64, back: bool| {
        let descriptors = [&one, &other].map(|descriptor| {
            let mut descriptor = descriptor.clone();
            descriptor["hitsAddend"] = json!(hits);
            descriptor["isNegativeHits"] = json!(back);
            descriptor
        });
        scene.ask(&request("d", &descriptors)).left()
    };
    assert_eq!(take(4, false), [12, 12]);
    assert_eq!(take(1, false), [10, 10]);
    assert_eq!(take(1, true), [12, 12]);
    assert_eq!(take(3, true), [18, 18]);
}

/// A charge after the fact was not counted if the limit only counts.
#[test]
fn what_is_denied_counts_also_where_nothing_is_enforced() {
    both(YAML, &["--envoy-count-denied"], |scene| {
        scene.cost("d", &[("tried", "v")], 3).passes(2);
        scene.cost("d", &[("tried", "v")], 4).passes(0);
        scene.cost("d", &[("tried", "v")], 1).passes(0);
    });
    let rules = "[[rule]]\nname = 'r'\nlimits = '9/day'\n\
                 [[rule]]\nname = 's'\nlimits = '2/day'\nshadow = true";
    let scene = Scene::with_rules(rules, "domain: other", &["--envoy-count-denied"]);
    for left in [6, 3, 0] {
        let answer = scene.cost("d", &[("a", "1")], 3);
        assert!(!answer.over, "{answer:?}");
        // Once, though the other denies.
        let policy = "\"r\";q=9;w=86400";
        assert_eq!(answer.header("ratelimit-policy"), Some(policy));
        let told = answer.header("ratelimit").unwrap();
        assert!(told.starts_with(&format!("\"r\";r={left};")), "{told}");
    }
}

/// A file that could not be read was left out, and its limits with it.
#[test]
fn what_is_called_yaml_is_read_or_wrong() {
    let home = home(&[("limits.yaml", YAML)]);
    std::os::unix::fs::symlink("nowhere", home.path().join("config/gone.yaml")).unwrap();
    std::fs::create_dir(home.path().join("config/directory.yaml")).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(["rules", "check", "--envoy", "config"]).current_dir(home.path());
    let (status, told) = service::ended(command);
    assert_eq!(status, Some(2));
    assert!(told.starts_with("config/gone.yaml: "), "{told}");
}

/// The reader gave up at a quarter of a million nodes, and at fewer levels than there may be.
#[test]
fn files_may_be_long_and_deep() {
    let mut text = "domain: d\ndescriptors:\n".to_owned();
    for number in 0..40_000 {
        text += &format!("  - key: k\n    value: v{number}\n    rate_limit:\n      unit: day\n");
        text += "      requests_per_unit: 3\n";
    }
    for level in 0..32 {
        let indent = "    ".repeat(level);
        text += &format!("{indent}  - key: deep\n");
        let below = if level < 31 { "descriptors:" } else { "rate_limit: { unit: day }" };
        text += &format!("{indent}    {below}\n");
    }
    let scene = Scene::start(&text, &[]);
    scene.hit("d", &[("k", "v39999")]).passes(2);
    assert!(scene.hit("d", &[("deep", "x"); 32]).over);
    assert!(!scene.hit("d", &[("deep", "x"); 31]).over);
}

/// Long questions that came in side by side waited for each other's room, for ten seconds.
#[test]
fn long_questions_come_in_side_by_side() {
    let scene = Scene::start(YAML, &[]);
    let body = scene.home.path().join("body");
    let value = "v".repeat(60_000);
    // A domain, and a descriptor with an entry.
    let text = |tag: u8, text: &[u8]| {
        let (mut length, mut out) = (text.len(), vec![tag << 3 | 2]);
        while length >= 128 {
            out.push(u8::try_from(length % 128).unwrap() | 128);
            length /= 128;
        }
        out.push(u8::try_from(length).unwrap());
        [out, text.to_vec()].concat()
    };
    let entry = [text(1, b"user"), text(2, value.as_bytes())].concat();
    let message = [text(1, b"d"), text(2, &text(1, &entry))].concat();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    std::fs::write(&body, [&[0], &length[..], &message].concat()).unwrap();
    let path = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    let mut load = std::process::Command::new("h2load");
    load.args(["-n", "96", "-c1", "-m", "96", "-H", "content-type: application/grpc", "-d"]);
    load.arg(&body).arg(format!("http://{}/{path}", scene.grpc));
    let began = std::time::Instant::now();
    let output = load.output().expect("h2load, which is a package of Debian's");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("96 succeeded"), "{told}");
    assert!(began.elapsed().as_secs() < 8, "{:?}: {told}", began.elapsed());
    assert!(scene.cost("d", &[("user", &value)], 0).over, "five of them passed");
}

/// Calls that were called off while the service paused were taken for an attack, and all others on the connection failed.
#[test]
fn a_pause_costs_those_nothing_who_have_time() {
    let scene = Scene::start(YAML, &[]);
    scene.hit("d", &[("user", "first")]).passes(4);
    let ask = |deadline: f64| {
        let asked = request("d", &[descriptor(&[("user", "ann")])]);
        let to = scene.grpc.to_string();
        Call::start(json!({"op": "limit", "to": to, "request": asked, "deadline": deadline}))
    };
    scene.service.signal("STOP");
    let patient: Vec<_> = (0..5).map(|_| ask(15.0)).collect();
    let hasty: Vec<_> = (0..60).map(|_| ask(0.2)).collect();
    for waiting in &hasty {
        assert_eq!(waiting.next()["error"]["code"], "DEADLINE_EXCEEDED");
    }
    scene.service.signal("CONT");
    for waiting in &patient {
        let answer = waiting.next();
        assert!(answer.get("error").is_none(), "{answer}");
    }
}
