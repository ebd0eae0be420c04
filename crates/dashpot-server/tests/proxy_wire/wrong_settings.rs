//! What it is told and cannot do: it says so, and ends.

use std::net::TcpListener;

use crate::scene::command;
use crate::service::{Directory, ended};

const UPSTREAM: [&str; 2] = ["--upstream", "http://127.0.0.1:3000"];

/// It ends, and names what is wrong.
#[track_caller]
fn refused(home: &Directory, arguments: &[&str], named: &str) {
    let (code, told) = ended(command(home.path(), arguments));
    assert_eq!(code, Some(2), "{arguments:?}: {told}");
    assert!(told.contains(named), "{arguments:?}: no {named:?} in {told}");
    assert!(!told.contains("panicked"), "{told}");
}

/// Flags, their variables, the keys of `[proxy]`, and values that none of them can have.
const VALUES: &[(&str, &str, &str, &[&str])] = &[
    (
        "--upstream",
        "DASHPOT_UPSTREAM",
        "upstream",
        &[
            "",
            "nonsense",
            "127.0.0.1:3000",
            "https://127.0.0.1:3000",
            "ftp://127.0.0.1:3000",
            "http://",
            "http://:3000",
            "http://127.0.0.1:port",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:3000/path",
            "http://127.0.0.1:3000/?query",
            "http://user@127.0.0.1:3000",
            "http://127.0.0.1:3000 http://127.0.0.1:3001",
        ],
    ),
    (
        "--listen",
        "DASHPOT_PROXY_LISTEN",
        "listen",
        &["", "nowhere", "127.0.0.1", "127.0.0.1:99999", "off"],
    ),
    ("--admin-listen", "DASHPOT_ADMIN_LISTEN", "admin_listen", &["", "nowhere", "127.0.0.1:99999"]),
    ("--connect-timeout", "DASHPOT_CONNECT_TIMEOUT", "connect_timeout", &["", "soon", "-1s", "0s"]),
    (
        "--response-timeout",
        "DASHPOT_RESPONSE_TIMEOUT",
        "response_timeout",
        &["", "soon", "-1s", "0s"],
    ),
    ("--client-timeout", "DASHPOT_CLIENT_TIMEOUT", "client_timeout", &["", "soon", "-1s", "0s"]),
    ("--idle-timeout", "DASHPOT_IDLE_TIMEOUT", "idle_timeout", &["", "soon", "-1s", "0s"]),
    ("--tunnel-timeout", "DASHPOT_TUNNEL_TIMEOUT", "tunnel_timeout", &["", "soon", "-1s", "0s"]),
    (
        "--max-body",
        "DASHPOT_MAX_BODY",
        "max_body",
        &["", "much", "-1", "1.5", "99999999999999999999999"],
    ),
];

#[test]
fn a_wrong_value_is_told_by_its_flag() {
    let home = Directory::new();
    for (flag, _, _, values) in VALUES {
        for value in *values {
            let given = format!("{flag}={value}");
            let mut arguments = vec![given.as_str()];
            if *flag != "--upstream" {
                arguments.extend(UPSTREAM);
            }
            refused(&home, &arguments, flag);
        }
    }
}

#[test]
fn a_wrong_value_is_told_by_its_variable() {
    let home = Directory::new();
    for (flag, variable, _, values) in VALUES {
        for value in *values {
            let mut command = command::<&str>(home.path(), &[]);
            command.env("DASHPOT_UPSTREAM", UPSTREAM[1]).env(variable, value);
            let (code, told) = ended(command);
            assert_eq!(code, Some(2), "{variable}={value}: {told}");
            assert!(told.contains(flag) || told.contains(variable), "{variable}={value}: {told}");
        }
    }
}

#[test]
fn a_wrong_value_is_told_by_its_line() {
    let home = Directory::new();
    for (_, variable, key, values) in VALUES {
        for value in *values {
            home.write("dashpot.toml", &format!("# one\n[proxy]\n{key} = '{value}'\n"));
            let mut command = command::<&str>(home.path(), &[]);
            command.env("DASHPOT_UPSTREAM", UPSTREAM[1]).env_remove(variable);
            let (code, told) = ended(command);
            assert_eq!(code, Some(2), "{key} = '{value}': {told}");
            assert!(told.contains("dashpot.toml:3:"), "{key} = '{value}': {told}");
        }
    }
}

#[test]
fn other_wrong_lines_are_told_as_well() {
    let home = Directory::new();
    for line in [
        "upstreams = 'http://127.0.0.1:3000'",
        "upstream = 3000",
        "upstream = ['http://127.0.0.1:3000']",
        "max_body = -1",
        "max_body = true",
        "connect_timeout = 5",
        "access_log = 7",
        "limit = '5/min'",
        "threads = 3",
    ] {
        home.write("dashpot.toml", &format!("# one\n[proxy]\n{line}\n"));
        refused(&home, &UPSTREAM, "dashpot.toml:3:");
    }
}

#[test]
fn without_a_backend_there_is_nothing_to_do() {
    let home = Directory::new();
    refused(&home, &[], "--upstream");
    home.write("dashpot.toml", "[proxy]\nmax_body = 10\n");
    refused(&home, &[], "--upstream");
    home.write("dashpot.toml", "[[rule]]\nname = 'all'\nlimits = ['7/day']\n");
    refused(&home, &[], "--upstream");
}

#[test]
fn limits_by_flags_are_for_those_without_a_file() {
    let home = Directory::new();
    for (arguments, named) in [
        (&["--limit", "nonsense"][..], "--limit"),
        (&["--limit", "5/fortnight"], "--limit"),
        (&["--limit", ""], "--limit"),
        (&["--limit", "5/min", "--by", "nonsense"], "--by"),
        (&["--limit", "5/min", "--by", ""], "--by"),
        (&["--by", "ip"], "--limit"),
        (&["--limit", "5/min", "--limit", "7/min"], "limit"),
    ] {
        refused(&home, &[&UPSTREAM[..], arguments].concat(), named);
    }
    home.write("dashpot.toml", "[[rule]]\nname = 'all'\nlimits = ['7/day']\n");
    refused(&home, &[&UPSTREAM[..], &["--limit", "5/min"]].concat(), "--limit");
    home.write("other.toml", "");
    let beside = ["--limit", "5/min", "--config", "other.toml"];
    refused(&home, &[&UPSTREAM[..], &beside].concat(), "--limit");
}

#[test]
fn an_address_that_is_taken_is_told() {
    let home = Directory::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--admin-listen"] {
        refused(&home, &[&UPSTREAM[..], &[flag, &address]].concat(), &address);
    }
    home.write("dashpot.toml", &format!("[proxy]\nlisten = '{address}'\n"));
    let mut command = command(home.path(), &UPSTREAM);
    command.env_remove("DASHPOT_PROXY_LISTEN");
    let (code, told) = ended(command);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains(&address) && told.contains("in use"), "{told}");
}

#[test]
fn what_cannot_be_read_or_written_is_told() {
    let home = Directory::new();
    home.write("key.pem", "not a key");
    for (arguments, named) in [
        (&["--config", "missing.toml"][..], "missing.toml"),
        (&["--tls-certificate", "missing.pem", "--tls-key", "key.pem"], "missing.pem"),
        (&["--tls-certificate", "key.pem", "--tls-key", "key.pem"], "key.pem"),
        (&["--tls-certificate", "key.pem"], "--tls-key"),
        (&["--tls-key", "key.pem"], "--tls-certificate"),
        (&["--access-log", "missing/access.log"], "missing/access.log"),
        (&["--access-log", "."], "directory"),
        (&["--admin-token-file", "missing-token"], "missing-token"),
        (&["--admin-token", ""], "token"),
        (&["--state-file", "."], "directory"),
        (&["--threads", "0"], "--threads"),
        (&["--max-connections", "none"], "--max-connections"),
        (&["--drain-delay", "soon"], "--drain-delay"),
        (&["--drain-timeout", "soon"], "--drain-timeout"),
        (&["--log-format", "xml"], "--log-format"),
        (&["--log-level", "loud"], "--log-level"),
        (&["--store", "http://example.com"], "http://example.com"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["surplus"], "surplus"),
    ] {
        refused(&home, &[&UPSTREAM[..], arguments].concat(), named);
    }
    home.write("dashpot.toml", "[proxy]\ntls_certificate = 'missing.pem'\ntls_key = 'key.pem'\n");
    refused(&home, &UPSTREAM, "missing.pem");
    home.write("dashpot.toml", "[proxy]\ntls_certificate = 'key.pem'\n");
    refused(&home, &UPSTREAM, "tls_key");
    home.write("dashpot.toml", "[proxy]\naccess_log = 'missing/access.log'\n");
    refused(&home, &UPSTREAM, "missing/access.log");
}
