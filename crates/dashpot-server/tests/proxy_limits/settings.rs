//! What it is told, by whom, and what it says of that.

use dashpot_testkit::process::free_port;

use crate::backend::Backend;
use crate::home::Home;
use crate::proxy::{PORTS, Proxy};

const RULES: &str = "[[rule]]\nname = 'all'\nlimits = ['2/day']\n";

#[test]
fn it_greets_as_the_page_shows() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "5/min", "--by", "ip"]);
    let version = env!("CARGO_PKG_VERSION");
    let (own, admin, url) = (proxy.address, proxy.admin(), backend.url());
    let expected = format!(
        "dashpot {version}, in memory, 1 rule\nproxy on http://{own} for {url}\n\
         listening on http://{admin}\n\n  curl -i http://{own}/\n"
    );
    assert_eq!(proxy.stdout().trim_end(), expected.trim_end());
}

#[test]
fn variables_say_all_of_it() {
    let backend = Backend::start();
    let proxy = Proxy::run(Home::new(), &["proxy"], |command| {
        command.env("DASHPOT_UPSTREAM", backend.url());
        command.env("DASHPOT_PROXY_LISTEN", "127.0.0.1:0");
        command.env("DASHPOT_ADMIN_LISTEN", "127.0.0.1:0");
        command.env("DASHPOT_PROXY_LIMIT", "2/day");
        command.env("DASHPOT_PROXY_BY", "header:x-tenant");
        command.env("DASHPOT_ACCESS_LOG", "log");
    });
    let ask = |line: &str| proxy.statuses("/", &[line], 3);
    assert_eq!(ask("x-tenant: a"), [200, 200, 429]);
    assert_eq!(ask("x-tenant: b"), [200, 200, 429]);
    dashpot_testkit::process::until("the log", crate::caller::PATIENCE, || {
        (proxy.home.read("log").lines().count() == 6).then_some(())
    });
}

#[test]
fn a_flag_comes_before_a_variable_and_a_variable_before_the_file() {
    let backend = Backend::start();
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let of_file = format!("{RULES}[proxy]\nupstream = '{nobody}'\nlisten = '203.0.113.1:9'\n");
    let flags = ["proxy", "--admin-listen", "127.0.0.1:0"];
    let home = Home::new();
    home.write("dashpot.toml", &of_file);
    let proxy = Proxy::run(home, &flags, |command| {
        command.env("DASHPOT_UPSTREAM", backend.url());
        command.env("DASHPOT_PROXY_LISTEN", "127.0.0.1:0");
    });
    assert_eq!(proxy.statuses("/", &[], 3), [200, 200, 429]);

    let home = Home::new();
    home.write("dashpot.toml", RULES);
    let url = backend.url();
    let proxy = Proxy::run(
        home,
        &[&flags[..], &["--upstream", &url, "--listen", "127.0.0.1:0"]].concat(),
        |command| {
            command.env("DASHPOT_UPSTREAM", &nobody);
            command.env("DASHPOT_PROXY_LISTEN", "203.0.113.1:9");
        },
    );
    assert_eq!(proxy.statuses("/", &[], 3), [200, 200, 429]);
}

#[test]
fn the_file_says_all_of_it() {
    let backend = Backend::start();
    let home = Home::new();
    let url = backend.url();
    home.write(
        "dashpot.toml",
        &format!(
            "[proxy]\nupstream = '{url}'\nlisten = '127.0.0.1:0'\nadmin_listen = '127.0.0.1:0'\n\
             access_log = 'log'\nmax_body = 10\nresponse_timeout = '9s'\n{RULES}"
        ),
    );
    let proxy = Proxy::run(home, &["proxy"], |_| {});
    assert!(proxy.stdout().contains("in memory, 1 rule\n"), "{}", proxy.stdout());
    assert_eq!(proxy.caller().ask("POST", "/", &[], "12345678901").status, 413);
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(proxy.admin_get("/healthz").status, 200);
    dashpot_testkit::process::until("the log", crate::caller::PATIENCE, || {
        proxy.home.read("log").contains(" 413 ").then_some(())
    });
}

#[test]
fn what_serve_is_told_is_not_meant() {
    let backend = Backend::start();
    let rules =
        format!("{RULES}[serve]\nlisten = '203.0.113.1:9'\ngrpc_listen = '203.0.113.1:8'\n");
    let proxy = Proxy::by(&backend, &rules);
    assert_eq!(proxy.statuses("/", &[], 3), [200, 200, 429]);
    assert!(!proxy.stdout().contains("gRPC on"), "{}", proxy.stdout());
}

#[test]
fn a_limit_beside_a_rule_file_is_a_mistake() {
    let home = Home::new();
    home.write("rules.toml", RULES);
    let url = format!("http://127.0.0.1:{}", free_port());
    let flags = [&PORTS[..], &["--upstream", &url, "--limit", "5/min"]].concat();
    let told = home.refusal(&[&flags[..], &["--config", "rules.toml"]].concat());
    assert!(told.contains("--limit"), "{told}");
    // Also beside the one that lies there.
    home.write("dashpot.toml", RULES);
    let told = home.refusal(&flags);
    assert!(told.contains("--limit"), "{told}");
}

#[test]
fn what_is_wrong_is_told_at_once() {
    let home = Home::new();
    let url = format!("http://127.0.0.1:{}", free_port());
    let upstream = |wrong: &'static str| vec!["--upstream", wrong];
    let beside = |more: &[&'static str]| [&["--upstream", "http://127.0.0.1:9"], more].concat();
    let cases = [
        (vec![], "upstream"),
        (upstream("127.0.0.1:9"), "upstream"),
        (upstream("http://127.0.0.1:9/path"), "upstream"),
        (upstream("https://127.0.0.1:9"), "https"),
        (upstream("ftp://127.0.0.1:9"), "ftp"),
        (beside(&["--limit", "5/fortnight"]), "fortnight"),
        (beside(&["--limit", "many"]), "many"),
        (beside(&["--limit", "5/min", "--by", "shoe-size"]), "shoe-size"),
        (beside(&["--by", "ip"]), "--limit"),
        (beside(&["--limit", "5/min", "--limit", "6/min"]), "min"),
        (beside(&["--max-body", "much"]), "--max-body"),
        (beside(&["--response-timeout", "soon"]), "--response-timeout"),
        (beside(&["--access-log", "missing/log"]), "missing/log"),
        (beside(&["--config", "missing.toml"]), "missing.toml"),
    ];
    for (arguments, word) in cases {
        let told = home.refusal(&[&PORTS[..], &arguments].concat());
        assert!(told.contains(word), "{arguments:?}: {told}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--admin-listen"] {
        let other = if flag == "--listen" { "--admin-listen" } else { "--listen" };
        let told = home.refusal(&["--upstream", &url, flag, &address, other, "127.0.0.1:0"]);
        assert!(told.contains(&address) && told.contains("in use"), "{flag}: {told}");
    }
}

#[test]
fn rules_are_read_again_when_they_change() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, RULES);
    assert_eq!(proxy.statuses("/", &[], 3), [200, 200, 429]);
    proxy.home.write("rules.toml", &RULES.replace('2', "4"));
    proxy.await_metric("dashpot_reloads_total", 1.0);
    // What was used goes on.
    assert_eq!(proxy.statuses("/", &[], 3), [200, 200, 429]);
    proxy.home.write("rules.toml", "[[rule]]\nname = ");
    proxy.await_metric("dashpot_failed_reloads_total", 1.0);
    assert_eq!(proxy.statuses("/", &[], 1), [429]);
    assert_eq!(backend.count(), 4);
}
