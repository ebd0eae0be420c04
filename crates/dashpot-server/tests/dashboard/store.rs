//! How the store is, and what is shown when nobody is there.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use dashpot_testkit::RedisServer;
use dashpot_testkit::process::{TemporaryDirectory, free_port, start};

use crate::browser::Browser;
use crate::scene::{RULES, Scene};

#[test]
fn a_store_that_is_gone_is_seen_to_be() {
    let redis = RedisServer::start();
    let rules = format!("[store]\nurl = '{}'\non_error = 'local'\n{RULES}", redis.url());
    let scene = Scene::start(&rules, &[]);
    let browser = &scene.browser;
    browser.until(
        "Redis, up",
        "return /redis/i.test(document.querySelector('#store').textContent) \
                                && /\\bup\\b/i.test(document.querySelector('#store').textContent)",
    );
    redis.kill();
    scene.ask("203.0.113.7", 2);
    // In words, not only by a colour.
    browser.until(
        "that it is down",
        "return /\\bDOWN\\b/.test(document.querySelector('#store').textContent)",
    );
    scene.ask("203.0.113.7", 3);
    browser.until(
        "degraded decisions",
        "return Number(document.querySelector('tr[data-rule=api] [data-cell=degraded]').textContent) > 0",
    );
    browser.is_content();
}

#[test]
fn a_service_that_is_gone_is_said_to_be() {
    let mut scene = Scene::start(RULES, &[]);
    scene.service.kill();
    scene.browser.until_text("#status", "reconnecting");
}

/// The gateway's admin port has the same page.
#[test]
fn the_gateway_has_it_too() {
    let directory = TemporaryDirectory::new();
    let backend = free_port();
    let mut gateway = start(env!("CARGO_BIN_EXE_dashpot"), |command| {
        command.args(["proxy", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.args([
            "--upstream",
            &format!("http://127.0.0.1:{backend}"),
            "--limit",
            "1/h",
            "--by",
            "ip",
        ]);
        command
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
    });
    let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut told = |begin: &str| {
        let line = lines.find(|line| line.starts_with(begin)).unwrap();
        line[begin.len()..].split(' ').next().unwrap().to_owned()
    };
    let proxy = told("proxy on http://");
    let admin = told("listening on http://");
    let browser = Browser::open(&admin);
    browser.until_text("#status", "Connected");
    for _ in 0..3 {
        let url = format!("http://{proxy}/");
        let mut curl = std::process::Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "--max-time", "20", &url]).status().unwrap();
    }
    browser.until_text("tr[data-rule=limit] [data-cell=denied]", "2");
    browser.until_text("#top", "127.0.0.1");
    browser.is_content();
    gateway.kill().unwrap();
    gateway.wait().unwrap();
}
