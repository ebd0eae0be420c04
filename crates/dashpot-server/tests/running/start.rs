//! Starting: what it says, what it finds, and what it refuses.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::service::{Directory, Service, command, ended, refusal};

const RULES: &str = "[[rule]]\nname = 'all'\nlimits = ['7/day']\n";
const REQUEST: &str = r#"{"request":{"path":"/"}}"#;

#[test]
fn without_a_file_and_flags_it_serves_from_memory() {
    let home = Directory::new();
    // The usual port may be somebody's. Then it says so, and nothing else is the matter.
    let service = match TcpListener::bind("127.0.0.1:8080").map(drop) {
        Ok(()) => Service::run(command::<&str>(home.path(), &[])),
        Err(_) => Service::start_in::<&str>(home.path(), &[]),
    };
    assert!(service.address.ip().is_loopback(), "{}", service.address);
    let mut client = service.client();
    let answer = client.check(r#"{"key":"alice","limit":"2/day"}"#);
    assert!(answer.allowed());
    assert_eq!(answer.remaining(), 1);
    let health = client.get("/v1/health").json();
    assert_eq!(health["store"], "memory");
    assert_eq!(client.get("/healthz").status, 200);
    assert_eq!(client.get("/readyz").status, 200);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "it leaves nothing behind");
}

#[test]
fn the_command_it_prints_works_as_it_stands() {
    let service = Service::start::<&str>(&[]);
    service.client().get("/healthz");
    let stdout = service.stdout();
    let lines: Vec<_> =
        stdout.lines().map(str::trim).filter(|line| line.starts_with("curl")).collect();
    let [line] = lines[..] else { panic!("one line, not {lines:?}: {stdout}") };
    let output = Command::new("sh").args(["-c", &format!("{line} -sS -m 20")]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{line}: {output:?}");
    assert!(told.starts_with("HTTP/1.1 200 OK"), "{told}");
    assert!(told.contains(r#""outcome":"allow""#), "{told}");
}

#[test]
fn it_is_quick_to_answer() {
    let begun = Instant::now();
    let service = Service::start::<&str>(&[]);
    let answer = service.client().check(r#"{"key":"alice","limit":"2/day"}"#);
    let took = begun.elapsed();
    assert!(answer.allowed());
    println!("listens after {:?}, answers after {took:?}", service.start);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_file_in_the_working_directory_is_found() {
    let home = Directory::new();
    home.write("dashpot.toml", RULES);
    let service = Service::start_in::<&str>(home.path(), &[]);
    let answer = service.client().check(REQUEST);
    assert_eq!(answer.json()["policies"][0]["limit"], 7, "{answer:?}");

    // A file that is named comes before the one that lies there.
    home.write("other.toml", &RULES.replace('7', "9"));
    let service = Service::start_in(home.path(), &["--config", "other.toml"]);
    let answer = service.client().check(REQUEST);
    assert_eq!(answer.json()["policies"][0]["limit"], 9, "{answer:?}");
}

#[test]
fn all_files_of_a_directory_are_one() {
    let home = Directory::new();
    home.write("a.toml", RULES);
    home.write("b.toml", "[[rule]]\nname = 'more'\nlimits = ['3/h']\n");
    let service = Service::start_in(home.path(), &["--config", "."]);
    let answer = service.client().check(REQUEST);
    assert_eq!(answer.json()["policies"].as_array().unwrap().len(), 2, "{answer:?}");
}

#[test]
fn a_wrong_file_is_told_by_line_and_column() {
    let home = Directory::new();
    home.write("dashpot.toml", "[[rule]]\nname = 'a'\nlimits = ['5/fortnight']\nlimit = 3\n");
    let (code, told) = refusal(home.path(), &["--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("dashpot.toml:3:14: "), "{told}");
    assert!(told.contains("dashpot.toml:4:1: "), "all that is wrong: {told}");
    home.write("dashpot.toml", "[[rule]\nname = ");
    let (code, told) = refusal(home.path(), &["--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("dashpot.toml:1:"), "{told}");
}

#[test]
fn a_port_that_is_taken_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = Directory::new();
    let (code, told) = refusal(home.path(), &["--listen", &address]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains(&address) && told.contains("in use"), "{told}");
}

#[test]
fn what_cannot_be_read_or_is_not_known_is_refused() {
    let home = Directory::new();
    home.write("empty", "");
    home.write("key.pem", "not a key");
    let cases: &[(&[&str], &str)] = &[
        (&["--config", "missing.toml"], "missing.toml"),
        (&["--admin-token-file", "missing"], "missing"),
        (&["--admin-token-file", "empty"], "token"),
        (&["--admin-token", ""], "token"),
        (&["--tls-certificate", "missing", "--tls-key", "key.pem"], "missing"),
        (&["--tls-certificate", "key.pem", "--tls-key", "key.pem"], "key.pem"),
        (&["--tls-certificate", "key.pem"], "--tls-key"),
        (&["--state-file", "."], "directory"),
        (&["--state-every", "soon"], "--state-every"),
        (&["--state-every", "0s"], "--state-every"),
        (&["--drain-delay=-1s"], "--drain-delay"),
        (&["--threads", "0"], "--threads"),
        (&["--log-level", "loud"], "--log-level"),
        (&["--log-format", "xml"], "--log-format"),
        (&["--store", "http://example.com"], "http://example.com"),
        (&["--listen", "nowhere"], "nowhere"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["surplus"], "surplus"),
    ];
    for (arguments, word) in cases {
        let mut all = arguments.to_vec();
        if !arguments.contains(&"--listen") {
            all.extend(["--listen", "127.0.0.1:0"]);
        }
        let (code, told) = refusal(home.path(), &all);
        assert_eq!(code, Some(2), "{arguments:?}: {told}");
        assert!(told.contains(word), "{arguments:?}: {told}");
    }
}

#[test]
fn every_flag_is_also_a_variable() {
    let home = Directory::new();
    let help = command(home.path(), &["--help"]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let flags: Vec<_> = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--")?.split_once(" <"))
        .map(|(flag, _)| flag)
        .collect();
    assert!(flags.len() >= 14, "{flags:?}");
    for flag in flags {
        let variable = format!("DASHPOT_{}", flag.to_uppercase().replace('-', "_"));
        assert!(help.contains(&format!("[env: {variable}")), "--{flag}: {help}");
        // Each of these values is wrong, and so it shows that the variable is looked at.
        let wrong = match flag {
            "admin-token" | "resp-password" => "",
            "store" => "http://example.com",
            "state-file" => ".",
            _ => "/missing/nonsense",
        };
        let beside: &[&str] = match flag {
            "listen" => &[],
            "tls-certificate" => &["--listen", "127.0.0.1:0", "--tls-key", "key"],
            "tls-key" => &["--listen", "127.0.0.1:0", "--tls-certificate", "cert"],
            _ => &["--listen", "127.0.0.1:0"],
        };
        let mut command = command(home.path(), beside);
        command.env(variable, wrong);
        let (code, told) = ended(command);
        assert_eq!(code, Some(2), "--{flag}: {told}");
    }
}

#[test]
fn a_variable_works_and_a_flag_comes_before_it() {
    let home = Directory::new();
    home.write("rules.toml", RULES);
    let mut command = command(home.path(), &["--admin-token", "said-to-it"]);
    command.env("DASHPOT_LISTEN", "127.0.0.1:0").env("DASHPOT_CONFIG", "rules.toml");
    command.env("DASHPOT_ADMIN_TOKEN", "not-used-here");
    let service = Service::run(command);
    let mut client = service.client();
    assert_eq!(client.check(REQUEST).json()["policies"][0]["limit"], 7);
    let mut asked_with = |token: &str| {
        let head = "GET /v1/rules HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer";
        client.send(format!("{head} {token}\r\n\r\n"));
        client.expect().status
    };
    assert_eq!(asked_with("said-to-it"), 200);
    assert_eq!(asked_with("not-used-here"), 401);
}

#[test]
fn the_file_says_where_and_a_flag_says_otherwise() {
    let home = Directory::new();
    home.write("token", "hidden-well\n");
    let rules = format!("{RULES}[serve]\nlisten = '127.0.0.1:0'\nadmin_token_file = 'token'\n");
    home.write("dashpot.toml", &rules);
    let service = Service::run(command::<&str>(home.path(), &[]));
    let mut client = service.client();
    assert_eq!(client.get("/v1/rules").status, 401);
    let asked =
        "GET /v1/rules HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer hidden-well\r\n\r\n";
    client.send(asked);
    assert_eq!(client.expect().status, 200);

    // Nobody can listen there, so it is the flag that counts.
    home.write("dashpot.toml", &rules.replace("127.0.0.1:0", "203.0.113.1:9"));
    let service = Service::start_in::<&str>(home.path(), &[]);
    assert_eq!(Client::to(service.address).get("/healthz").status, 200);
}

#[test]
fn scrapers_find_the_bucket_that_has_no_bound() {
    let service = Service::start::<&str>(&[]);
    let metrics = service.client().get("/metrics").body;
    assert!(metrics.contains(r#"le="+Inf""#), "{metrics}");
}
