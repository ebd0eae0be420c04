//! Counters move under real traffic.

use crate::scene::{RULES, Scene};

#[test]
fn counters_move_under_real_traffic() {
    let scene = Scene::start(RULES, &[]);
    let browser = &scene.browser;
    scene.until_cell("api", "allowed", "0");
    assert_eq!(scene.ask("203.0.113.7", 8), 429);
    scene.until_cell("api", "allowed", "5");
    scene.until_cell("api", "denied", "3");
    browser.until_text("#allowed-total", "5");
    browser.until_text("#denied-total", "3");
    browser.until_text("#top", "203.0.113.7");
    assert!(browser.text("tr[data-rule=api]").contains("5/h"), "what it says");
    // And on, without anybody touching the page.
    scene.ask("203.0.113.8", 2);
    scene.until_cell("api", "allowed", "7");
    browser.is_content();
}

#[test]
fn rates_are_seen_and_drawn() {
    let scene = Scene::start("[[rule]]\nname = 'api'\nlimits = ['unlimited']\n", &[]);
    let browser = &scene.browser;
    let height = "const paths = [...document.querySelectorAll('#chart path, #chart polyline')]; \
                  return Math.max(0, ...paths.map(path => path.getBBox().height))";
    // Traffic all the time, until the page has seen a second of it.
    browser.until("a rate", {
        std::thread::scope(|threads| {
            threads.spawn(|| scene.ask("203.0.113.7", 150));
        });
        "return parseFloat(document.querySelector('#allowed-rate').textContent.replace(',', '')) >= 0 \
         && document.querySelector('#chart').getAttribute('aria-label')"
    });
    let drawn = browser.until("a line with a peak", height);
    assert!(drawn.as_f64().unwrap() > 20.0, "{drawn}");
    browser.is_content();
}

#[test]
fn limits_that_are_in_no_rule_are_counted_too() {
    let scene = Scene::start("", &[]);
    scene.browser.until_text("#no-rules", "--config");
    scene.post("/v1/check", r#"{"key":"alice","limit":"1/h"}"#);
    assert_eq!(scene.post("/v1/check", r#"{"key":"alice","limit":"1/h"}"#), 429);
    scene.until_cell("(ad-hoc)", "denied", "1");
    scene.browser.until_text("#top", "alice");
    scene.browser.is_content();
}

/// What adapts shows how much of it there is.
#[test]
fn factors_are_shown() {
    let rules =
        "[[rule]]\nname = 'api'\nby = ['ip']\nlimits = ['100/h']\nadaptive = { tick = '1s' }\n";
    let scene = Scene::start(rules, &[]);
    // The machine's own processors may be busy with anything.
    assert_eq!(scene.post("/v1/health", r#"{"cpu":0.0,"for":"1min"}"#), 200);
    scene.browser.until_text("tr[data-rule=api] [data-cell=factor]", "100");
    assert_eq!(scene.post("/v1/health", r#"{"cpu":1.0,"for":"1min"}"#), 200);
    scene.browser.until(
        "the factor to fall",
        "return parseFloat(document.querySelector('tr[data-rule=api] [data-cell=factor]').textContent) < 100",
    );
    scene.browser.is_content();
}

/// Rules that are read again are shown without a reload of the page.
#[test]
fn new_rules_appear() {
    let scene = Scene::start(RULES, &[]);
    scene.until_cell("api", "allowed", "0");
    scene.rewrite("[[rule]]\nname = 'other'\nby = ['ip']\nlimits = ['7/h']\n");
    scene.until_cell("other", "allowed", "0");
    scene.browser.until_text("tr[data-rule=other]", "7/h");
    scene.browser.until("the old one to go", "return !document.querySelector('tr[data-rule=api]')");
    scene.browser.is_content();
}
