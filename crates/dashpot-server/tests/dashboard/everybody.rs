//! For everybody: on a telephone, in the dark, with a keyboard, with a screen reader.

use serde_json::{Value, json};

use crate::browser::{Browser, Device};
use crate::scene::{RULES, Scene, TOKEN};

/// Fills the page with what makes it wide.
fn filled(device: Device) -> Scene {
    let long = "a-rule-with-quite-a-long-name-as-people-give-them";
    let rules = format!(
        "{RULES}[[rule]]\nname = '{long}'\nmatch = {{ path = '/a/long/path/to/something/*' }}\nlimits = ['1000/day']\n"
    );
    let scene = Scene::start_on(&rules, &[], device);
    scene.ask("2001:db8:1234:5678:9abc:def0:1234:5678", 8);
    scene.browser.until_text("#top", "2001:db8");
    scene.browser.click("#play-run");
    scene.browser.until("a picture", "return document.querySelector('#play-plot svg') !== null");
    scene
}

#[test]
fn a_telephone_is_wide_enough() {
    let scene = filled(Device { width: Some(360) });
    let wide = scene.browser.run("return [innerWidth, document.documentElement.scrollWidth]");
    assert_eq!(wide, json!([360, 360]));
    // What can be pressed is large enough to be.
    let small = scene.browser.run(
        "return [...document.querySelectorAll('button, select, input:not([type=checkbox])')] \
         .filter(one => one.offsetParent && one.getBoundingClientRect().height < 24).map(one => one.outerHTML)",
    );
    assert_eq!(small, json!([]));
    scene.browser.is_content();
}

/// How well each text can be told from what is behind it, where that is less than WCAG's AA asks for.
const FAINT: &str = r#"
    // Colours may take a moment to change.
    await Promise.all(document.getAnimations().map(one => one.finished.catch(() => {})));
    const parse = color => { const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number); return { r, g, b, a } };
    const over = (top, below) => ({ r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a),
        b: top.b * top.a + below.b * (1 - top.a), a: 1 });
    const behind = element => {
        const layers = [];
        for (let one = element; one; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
        return layers.reverse().reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
    };
    const light = ({ r, g, b }) => [r, g, b].map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
    const faint = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let seen = 0;
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest('svg, [disabled], .unseen, .skip, option')) continue;
        const below = behind(element), style = getComputedStyle(element);
        const [one, other] = [light(over(parse(style.color), below)), light(below)].sort((a, b) => b - a);
        const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
        const contrast = (one + 0.05) / (other + 0.05);
        seen += 1;
        if (contrast < (large ? 3 : 4.5)) faint.push(`${contrast.toFixed(2)}: ${texts.currentNode.data.trim()}`);
    }
    return [seen, faint, getComputedStyle(document.body).backgroundColor];
"#;

fn read_in(browser: &Browser, scheme: &str) -> Value {
    let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
    browser.devtools("Emulation.setEmulatedMedia", &features);
    browser.run(FAINT)
}

#[test]
fn it_can_be_read_in_the_light_and_in_the_dark() {
    let scene = filled(Device::default());
    let [light, dark] = ["light", "dark"].map(|scheme| read_in(&scene.browser, scheme));
    for read in [&light, &dark] {
        assert!(read[0].as_u64().unwrap() > 60, "{read}");
        assert_eq!(read[1], json!([]));
    }
    assert_ne!(light[2], dark[2], "they differ");
    scene.browser.is_content();
}

/// Everything that can be used has a name, as a screen reader hears it.
#[test]
fn everything_has_a_name() {
    let scene = filled(Device::default());
    let tree = scene.browser.devtools("Accessibility.getFullAXTree", &json!({}));
    let (mut seen, mut nameless) = (0, Vec::new());
    for node in tree["nodes"].as_array().unwrap() {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let used = [
            "button", "textbox", "combobox", "checkbox", "link", "table", "img", "region", "meter",
        ];
        if node["ignored"] == true || !used.contains(&role) {
            continue;
        }
        seen += 1;
        if node["name"]["value"].as_str().unwrap_or_default().trim().is_empty() {
            nameless.push(node.to_string());
        }
    }
    assert!(seen > 25, "{seen}");
    assert!(nameless.is_empty(), "{}", nameless.join("\n"));
    let order = scene.browser.run(
        "return [...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))",
    );
    let order: Vec<i64> =
        order.as_array().unwrap().iter().map(|one| one.as_i64().unwrap()).collect();
    assert_eq!(order[0], 1);
    assert!(order.windows(2).all(|two| two[1] <= two[0] + 1), "no heading is left out: {order:?}");
    // What changes each second is not read out each second.
    let live = "return [...document.querySelectorAll('[aria-live], [role=status], [role=alert]')] \
                .some(one => one.contains(document.querySelector('#allowed-rate')))";
    assert_eq!(scene.browser.run(live), false);
}

/// Without a mouse: the token, a reset, the playground.
#[test]
fn a_keyboard_is_enough() {
    let scene = Scene::start(RULES, &["--admin-token", TOKEN]);
    let browser = &scene.browser;
    scene.ask("203.0.113.7", 6);
    browser.until("the form for the token", "return !document.querySelector('#token-form').hidden");
    let (tab, enter) = ("\u{e004}", "\u{e007}");
    browser.press(tab);
    assert!(
        browser.run("return document.activeElement.getAttribute('href')") == "#main",
        "the way past the header is first"
    );
    let reach = |what: &str| {
        for _ in 0..80 {
            browser.press(tab);
            if browser.run(&format!("return document.activeElement.matches('{what}')")) == true {
                let ring = "const style = getComputedStyle(document.activeElement); \
                            return style.outlineStyle !== 'none' || style.boxShadow !== 'none'";
                assert_eq!(browser.run(ring), true, "{what} shows that it has the focus");
                return;
            }
        }
        panic!("{what} cannot be reached");
    };
    reach("#token");
    browser.press(TOKEN);
    browser.press(enter);
    browser.until_text("#top", "203.0.113.7");
    reach("#top [data-action=reset]");
    // It stays where it is, although the numbers change each second.
    let before = browser.text("#uptime");
    browser.until(
        "a second to pass",
        &format!("return document.querySelector('#uptime').textContent !== '{before}'"),
    );
    assert_eq!(
        browser.run("return document.activeElement.matches('#top [data-action=reset]')"),
        true
    );
    browser.press(enter);
    browser.until("the reset", "return document.querySelector('#key-result').textContent !== ''");
    assert_eq!(scene.ask("203.0.113.7", 1), 200);
    reach("#play-traffic");
    browser.press(enter);
    browser.until("a picture", "return document.querySelector('#play-plot svg') !== null");
}
