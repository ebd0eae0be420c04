//! What administrators do to keys: with the token, and only with it.

use crate::scene::{RULES, Scene, TOKEN};

const ROW: &str = "#top tbody tr";

/// Whether all that changes something can be pressed.
fn is_enabled(scene: &Scene) -> bool {
    let script = "const all = [...document.querySelectorAll('[data-action]')]; \
                  return all.length > 0 && all.every(button => !button.matches(':disabled, [aria-disabled=true]'))";
    scene.browser.run(script) == true
}

#[test]
fn reset_works_with_the_token_and_only_with_it() {
    let scene = Scene::start(RULES, &["--admin-token", TOKEN]);
    let browser = &scene.browser;
    assert_eq!(scene.ask("203.0.113.7", 7), 429);
    scene.until_cell("api", "denied", "2");
    // Who has no token sees counts, and neither keys nor what rules say.
    browser.until("the form for the token", "return !document.querySelector('#token-form').hidden");
    assert!(!browser.text("#top").contains("203.0.113.7"));
    assert!(!is_enabled(&scene));
    // Nor does it help to press what cannot be pressed.
    let status = "const answer = await fetch('/v1/keys/reset', { method: 'POST', \
                  body: JSON.stringify({ request: { path: '/', ip: '203.0.113.7' } }) }); return answer.status";
    assert_eq!(browser.run(status), 401);
    assert_eq!(scene.ask("203.0.113.7", 1), 429, "nothing was reset");

    browser.write("#token", "wrong-horse");
    browser.press("\u{e007}");
    browser.until_text("#token-result", "not accepted");
    assert!(!is_enabled(&scene));
    assert!(!browser.run("return JSON.stringify(sessionStorage)").to_string().contains("horse"));

    browser.write("#token", TOKEN);
    browser.press("\u{e007}");
    browser.until_text("#top", "203.0.113.7");
    browser.until_text("tr[data-rule=api]", "5/h");
    assert!(is_enabled(&scene));
    browser.click(&format!("{ROW} [data-action=reset]"));
    browser.until_text("#key-result", "5");
    assert_eq!(scene.ask("203.0.113.7", 5), 200, "five more, since it was reset");
    assert_eq!(scene.ask("203.0.113.7", 1), 429);

    // It stays for the tab, and goes when it is told to.
    browser.go(scene.service.address());
    browser.until_text("#top", "203.0.113.7");
    browser.click("#forget-token");
    browser.until("the form for the token", "return !document.querySelector('#token-form').hidden");
    assert!(!browser.text("#top").contains("203.0.113.7"));
    assert!(!is_enabled(&scene));
    // The console says which of our own questions were refused, and nothing else.
    let console = browser.console();
    assert!(console.iter().all(|line| line.contains(" 401 ")), "{}", console.join("\n"));
}

#[test]
fn peek_block_and_unblock_on_the_same_machine_without_a_token() {
    let scene = Scene::start(RULES, &[]);
    let browser = &scene.browser;
    scene.ask("203.0.113.7", 6);
    browser.until_text("#top", "203.0.113.7");
    browser.click(&format!("{ROW} [data-action=peek]"));
    browser.until_text("#key-result", "0");
    browser.click(&format!("{ROW} [data-action=reset]"));
    browser.until(
        "the reset",
        "return /Forgot/.test(document.querySelector('#key-result').textContent)",
    );
    browser.click(&format!("{ROW} [data-action=block]"));
    browser.until(
        "the block",
        "return /block/i.test(document.querySelector('#key-result').textContent)",
    );
    assert_eq!(scene.ask("203.0.113.7", 1), 429, "blocked, although nothing is counted");
    browser.click(&format!("{ROW} [data-action=unblock]"));
    browser.until(
        "the end of it",
        "return /unblock/i.test(document.querySelector('#key-result').textContent)",
    );
    assert_eq!(scene.ask("203.0.113.7", 1), 200);
    browser.is_content();
}

#[test]
fn keys_of_limits_made_up_on_the_spot() {
    let scene = Scene::start("", &[]);
    let browser = &scene.browser;
    let check = r#"{"key":"alice","limit":"1/h"}"#;
    scene.post("/v1/check", check);
    assert_eq!(scene.post("/v1/check", check), 429);
    browser.until_text("#top", "alice");
    // Its limit is not known, so the form is filled in as far as it goes.
    browser.click(&format!("{ROW} [data-action=reset]"));
    browser.until("the key in the form", "return document.querySelector('#key').value === 'alice'");
    assert_eq!(scene.post("/v1/check", check), 429);
    browser.write("#limit", "1/h");
    browser.click("#key-form [data-action=reset]");
    browser.until(
        "the reset",
        "return /alice/.test(document.querySelector('#key-result').textContent)",
    );
    assert_eq!(scene.post("/v1/check", check), 200);
    // A mistake is shown as the service tells it.
    browser.write("#limit", "1/fortnight");
    browser.click("#key-form [data-action=peek]");
    browser.until_text("#key-result", "fortnight");
    let console = browser.console();
    assert!(console.iter().all(|line| line.contains(" 400 ")), "{}", console.join("\n"));
}
