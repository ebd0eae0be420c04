//! Nothing from elsewhere, nothing inline, nothing that callers wrote becomes part of the page.

use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;

use crate::scene::{RULES, Scene};

#[test]
fn the_content_security_policy_holds() {
    let scene = Scene::start(RULES, &[]);
    let browser = &scene.browser;
    browser.is_content();
    // Somebody else, who would hear of it.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    let tried = browser.run(&format!(
        "window.seen = []; window.ran = [];
         document.addEventListener('securitypolicyviolation', event => seen.push(event.effectiveDirective));
         const put = (name, make) => {{ const one = document.createElement(name); make(one); document.body.append(one); }};
         put('script', one => one.textContent = 'ran.push(\"inline\")');
         put('script', one => one.src = '{url}/evil.js');
         put('img', one => one.src = '{url}/pixel.png');
         put('div', one => one.setAttribute('onclick', 'ran.push(\"handler\")'));
         put('div', one => one.setAttribute('style', 'position: fixed'));
         put('iframe', one => one.src = '{url}/frame');
         put('form', one => {{ one.action = '{url}/form'; one.method = 'post'; one.submit(); }});
         put('base', one => one.href = '{url}/');
         document.body.lastElementChild.click();
         [...document.querySelectorAll('div[onclick]')].forEach(one => one.click());
         try {{ await fetch('{url}/fetch'); ran.push('fetch'); }} catch {{}}
         setTimeout(() => new Function('ran.push(\"eval\")')());
         await new Promise(done => setTimeout(done, 300));
         return [ran, [...new Set(seen)].sort(), document.baseURI.startsWith(location.origin), document.querySelector('#rules') !== null]"
    ));
    assert_eq!(tried[0], json!([]), "something ran");
    let seen = tried[1].to_string();
    for directive in [
        "script-src-elem",
        "script-src-attr",
        "style-src-attr",
        "img-src",
        "connect-src",
        "base-uri",
    ] {
        assert!(seen.contains(directive), "{directive} was not minded: {seen}");
    }
    assert_eq!((&tried[2], &tried[3]), (&true.into(), &true.into()), "it is still the same page");
    // A browser may connect ahead of time; what counts is what it says.
    while let Ok((mut stream, _)) = other.accept() {
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut heard = [0; 64];
        let length = stream.read(&mut heard).unwrap_or(0);
        assert_eq!(String::from_utf8_lossy(&heard[..length]), "", "somebody else heard of it");
    }
}

/// A page of somebody else's shows it to nobody.
#[test]
fn it_is_in_nobodys_frame() {
    let scene = Scene::start(RULES, &[]);
    let browser = &scene.browser;
    let inside = browser.run(
        "const frame = document.createElement('iframe'); frame.src = '/'; document.body.append(frame);
         await new Promise(done => setTimeout(done, 500));
         try { return frame.contentDocument?.querySelector('#rules') !== null && frame.contentDocument !== null } catch { return false }",
    );
    assert_eq!(inside, false);
}

/// Keys are whatever callers write, and so are names of what was asked.
#[test]
fn what_callers_write_is_text() {
    let scene = Scene::start("", &[]);
    let browser = &scene.browser;
    browser.run("window.ran = 0");
    let evil = "<img src=x onerror=ran=1><script>ran=1</script>\\u202e\\u0000\\\"'";
    for _ in 0..2 {
        scene.post("/v1/check", &format!(r#"{{"key":"{evil}","limit":"1/h"}}"#));
    }
    browser.until_text("#top", "<img src=x onerror=ran=1>");
    assert_eq!(
        browser
            .run("return [window.ran, document.querySelectorAll('main img, main script').length]"),
        json!([0, 0])
    );
    browser.is_content();
}
