//! What was found once by looking for trouble.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use dashpot_testkit::{Fault, Proxy, RedisServer};

use crate::client::{check, forward_auth, post};
use crate::service::{Directory, Service, refusal, until};

const LIMITED: &str = "[[rule]]\nname = 'a'\nmatch = { path = '/a' }\nlimits = ['1/h']\n";

/// To those who speak gRPC a denial is a 200; and to a gateway a 200 is a yes.
#[test]
fn a_denial_is_never_a_yes_to_a_gateway() {
    let home = Directory::new();
    let rules = format!("{LIMITED}[block]\nip = ['203.0.113.9/32']\n");
    let service = Service::with_rules(&home, &rules, &[]);
    let mut client = service.client();
    let mut ask = |from: &str, more: &str| {
        let asked = forward_auth("/a").replace("203.0.113.7", from);
        client.send(asked.replacen("\r\n", &format!("\r\n{more}"), 1));
        client.expect().status
    };
    assert_eq!(ask("203.0.113.7", ""), 200);
    for kind in ["text/plain", "application/grpc", "application/grpc+proto"] {
        let more = format!("content-type: {kind}\r\n");
        assert_eq!(ask("203.0.113.7", &more), 429, "{kind}");
        assert_eq!(ask("203.0.113.9", &more), 403, "{kind}");
    }
}

/// Who hangs up after something was taken, and before it is told, does not keep it.
#[test]
fn permits_of_those_who_hang_up_come_back() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(&redis.address());
    let home = Directory::new();
    let rules = format!(
        "[store]\nurl = 'redis://127.0.0.1:{}'\ndeadline = '3s'\n\
         [[rule]]\nname = 'two'\nlimits = ['2 concurrent']\n\
         [[rule]]\nname = 'shadow'\nlimits = ['9/s']\nshadow = true\n",
        proxy.port()
    );
    let service = Service::with_rules(&home, &rules, &["--reservation-ttl", "1s"]);
    let asked = r#"{"request":{"path":"/"},"reserve":true}"#;
    let peeked = r#"{"request":{"path":"/"},"cost":0}"#;
    let left = || service.client().check(peeked).json()["policies"][0]["remaining"].as_u64();
    until("Redis", Duration::from_secs(10), || (left() == Some(2)).then_some(()));
    // Both round trips take longer than it is waited for; the first takes the permit.
    proxy.set(Fault::Delay(Duration::from_millis(150)));
    for _ in 0..2 {
        let mut client = service.client();
        client.send(check(asked));
        std::thread::sleep(Duration::from_millis(450));
        drop(client);
    }
    proxy.set(Fault::None);
    until("permits to come back", Duration::from_secs(10), || (left() == Some(2)).then_some(()));
}

#[test]
fn two_processes_do_not_overwrite_each_other() {
    let home = Directory::new();
    let file = home.file("state");
    let first = Service::start_in(home.path(), &["--state-file", &file]);
    let (code, told) = refusal(home.path(), &["--listen", "127.0.0.1:0", "--state-file", &file]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("another process") && told.contains(&file), "{told}");
    // Also if it was killed, the next may.
    first.crash();
    Service::start_in(home.path(), &["--state-file", &file]).stop();
}

/// Texts of limits are remembered as they are written, so they may not be long.
#[test]
fn long_limits_do_not_fill_the_memory() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    let long = format!(r#"{{"key":"a","limit":"10/s{}"}}"#, " ".repeat(60_000));
    let answer = client.check(&long);
    assert_eq!((answer.status, &answer.json()["field"]), (400, &"limit".into()));
}

/// A second signal while it still says that it is about to stop.
#[test]
fn told_twice_while_it_waits_to_drain_it_goes_at_once() {
    let mut service = Service::start(&["--drain-delay", "20s", "--drain-timeout", "20s"]);
    let mut holder = service.client();
    // A body that never ends holds a connection.
    let begun = post("/v1/check", r#"{"key":"a","limit":"1/s"}"#);
    holder.send(&begun[..begun.len() - 3]);
    service.signal("TERM");
    until("it to be told", Duration::from_secs(5), || {
        (service.client().get("/readyz").status == 503).then_some(())
    });
    let asked = Instant::now();
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(10)).code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

fn dashpot(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command.arg("20").arg(env!("CARGO_BIN_EXE_dashpot")).args(arguments);
    command.env_clear().envs(variables.iter().copied()).output().unwrap()
}

/// Variables that are there for one command do not break another.
#[test]
fn variables_of_other_commands_do_no_harm() {
    let home = Directory::new();
    let rules = home.write("rules.toml", LIMITED);
    let variables =
        [("DASHPOT_ADMIN_TOKEN", "long-enough"), ("DASHPOT_SERVER", "http://127.0.0.1:1")];
    let fine = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output = dashpot(arguments, variables);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    };
    fine(&["check", "10/s", "--key", "a"], &variables[..1]);
    fine(&["rules", "explain", "GET", "/a", "--config", &rules], &variables);
    fine(&["rules", "diff", &rules, &rules], &variables);
}

/// The server is there, and what it counts on is not.
#[test]
fn a_server_without_its_store_is_an_end_of_its_own() {
    let home = Directory::new();
    let rules = "[store]\nurl = 'redis://127.0.0.1:1'\non_error = 'deny'\n".to_owned() + LIMITED;
    let service = Service::with_rules(&home, &rules, &[]);
    let url = format!("http://{}", service.address);
    let output = dashpot(&["check", "10/s", "--key", "a", "--server", &url], &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("store does not answer"), "{told}");
}

/// A second process sees what the first settled, in the file.
#[test]
fn what_was_settled_is_not_settled_again_after_a_restart() {
    let home = Directory::new();
    let file = home.file("state");
    let arguments = ["--state-file", &file, "--admin-token", "long-enough", "--drain-delay", "0s"];
    let first = Service::start_in(home.path(), &arguments);
    let asked = r#"{"key":"a","limit":"10/h","cost":5,"reserve":true}"#;
    let token = first.client().check(asked).json()["reservation"].as_str().unwrap().to_owned();
    let settling = format!(r#"{{"reservation":"{token}","used":0}}"#);
    assert_eq!(first.client().post("/v1/settle", &settling).status, 200);
    first.stop();
    let second = Service::start_in(home.path(), &arguments);
    assert_eq!(second.client().post("/v1/settle", &settling).status, 409);
}

/// And nothing is given back to counts that never had it.
#[test]
fn without_a_file_a_restart_makes_strangers() {
    let home = Directory::new();
    let arguments = ["--admin-token", "long-enough", "--drain-delay", "0s"];
    let first = Service::start_in(home.path(), &arguments);
    let asked = r#"{"key":"a","limit":"10/h","cost":5,"reserve":true}"#;
    let token = first.client().check(asked).json()["reservation"].as_str().unwrap().to_owned();
    first.stop();
    let second = Service::start_in(home.path(), &arguments);
    let settling = format!(r#"{{"reservation":"{token}","used":0}}"#);
    assert_eq!(second.client().post("/v1/settle", &settling).status, 404);
}

/// Who only blocks has rules enough to be asked.
#[test]
fn a_block_list_alone_can_be_asked() {
    let home = Directory::new();
    let service = Service::with_rules(&home, "[block]\nip = ['203.0.113.9/32']\n", &[]);
    let ask = |ip: &str| {
        let asked = format!(r#"{{"request":{{"path":"/","ip":"{ip}"}}}}"#);
        service.client().check(&asked)
    };
    assert_eq!(ask("203.0.113.7").status, 200);
    let denied = ask("203.0.113.9");
    assert_eq!((denied.status, &denied.json()["reason"]), (429, &"blocked".into()));
}
