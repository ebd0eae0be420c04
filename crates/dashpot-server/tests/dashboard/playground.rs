//! The playground draws, and explain explains.

use crate::scene::{RULES, Scene};

#[test]
fn the_playground_draws() {
    let scene = Scene::start(RULES, &[]);
    let browser = &scene.browser;
    browser.click("#play-run");
    browser.until("a picture", "return document.querySelector('#play-plot svg') !== null");
    let table = browser.text("#play-table");
    for algorithm in
        ["fixed-window", "sliding-window", "sliding-log", "token-bucket", "leaky-bucket"]
    {
        assert!(table.contains(algorithm), "{algorithm}: {table}");
    }
    assert!(browser.text("#play-plot").contains("at most 20 in 10s, 2.00 times the limit"));
    // As it is seen, not only as it is written: lines that have a height, and bars that have a colour.
    let seen = browser.run(
        "const paths = [...document.querySelectorAll('#play-plot svg path')].filter(path => path.getBBox().height > 20); \
         return [paths.length, paths.every(path => { const style = getComputedStyle(path); \
         return style.fill !== 'none' || style.stroke !== 'none'; })]",
    );
    assert!(seen[0].as_u64().unwrap() >= 10 && seen[1] == true, "{seen}");
    browser.is_content();
}

#[test]
fn it_is_as_one_asks_for() {
    let scene = Scene::start(RULES, &[]);
    let browser = &scene.browser;
    browser.write("#play-traffic", "steady 5/s");
    browser.write("#play-limit", "2/s");
    browser.write("#play-for", "10s");
    for other in ["leaky-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        browser.click(&format!("[name=algorithm][value={other}]"));
    }
    browser.click("#play-run");
    browser
        .until("one run", "return document.querySelectorAll('#play-table tbody tr').length === 1");
    // Two at first, and two each second.
    browser.until_text("#play-table tbody tr", "50");
    browser.until_text("#play-table tbody tr", "21");
    browser.is_content();
    // A mistake is shown, with what would be right.
    browser.write("#play-traffic", "storm");
    browser.click("#play-run");
    browser.until_text("#play-result", "no kind of traffic");
}

#[test]
fn explain_explains() {
    let scene = Scene::start(RULES, &[]);
    let browser = &scene.browser;
    browser.write("#explain-path", "/api/books");
    browser.write("#explain-ip", "203.0.113.7");
    browser.write("#explain-headers", "x-user-id: alice");
    browser.click("#explain-form button[type=submit]");
    browser.until_text("#explain-result", "rule `api`");
    browser.until_text("#explain-result", "ip=203.0.113.7");
    browser.is_content();
}
