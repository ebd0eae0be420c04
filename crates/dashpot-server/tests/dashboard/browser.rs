//! Chromium without a window, driven by chromedriver, which is asked by WebDriver's own words: JSON over HTTP.
//!
//! A library for that would turn on features of serde_json's in everything that is built beside it, the program under test included.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::process::{TemporaryDirectory, of_the_system, start};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::runtime::{self, Runtime};

/// How long anything may take before the test says what it waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What it is to be, but for the usual.
#[derive(Clone, Copy, Default)]
pub(crate) struct Device {
    /// A telephone, so wide.
    pub(crate) width: Option<u32>,
}

/// A browser with one page in it.
pub(crate) struct Browser {
    runtime: Runtime,
    client: Client,
    /// Where the driver is asked about it.
    session: String,
    chromedriver: Child,
    _home: TemporaryDirectory,
}

/// What WebDriver calls an element in its answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

impl Browser {
    /// Opens a page.
    pub(crate) fn open(address: &str) -> Self {
        Self::open_on(address, Device::default())
    }

    pub(crate) fn open_on(address: &str, device: Device) -> Self {
        let home = TemporaryDirectory::new();
        let log = home.path().join("chromedriver.log");
        let mut chromedriver = start(&of_the_system("chromedriver"), |command| {
            // Whatever it leaves behind is left where it is cleared away.
            command.arg("--port=0").env("HOME", home.path()).env("TMPDIR", home.path());
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            command.stderr(File::create(&log).unwrap());
        });
        let output = BufReader::new(chromedriver.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("was started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let port = port
            .unwrap_or_else(|| panic!("chromedriver: {}", std::fs::read_to_string(&log).unwrap()));
        // Reads on to the end, so that it never waits for somebody to read.
        thread::spawn(move || lines.for_each(drop));
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (client, session) = (Client::new(), format!("http://127.0.0.1:{port}/session"));
        let mut browser = Self { runtime, client, session, chromedriver, _home: home };
        let wanted =
            json!({ "capabilities": { "alwaysMatch": capabilities(&browser._home, device) } });
        let begun =
            browser.ask(Method::POST, "", &wanted).unwrap_or_else(|wrong| panic!("{wrong}"));
        browser.session += &format!("/{}", begun["sessionId"].as_str().unwrap());
        browser.go(address);
        browser
    }

    /// Asks the driver; what it answers, or why it does not.
    fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        let asked = self
            .client
            .request(method.clone(), format!("{}{path}", self.session))
            .timeout(2 * PATIENCE);
        let asked = if method == Method::POST { asked.body(body.to_string()) } else { asked };
        let told = self.runtime.block_on(async {
            let answer = asked.send().await.map_err(|error| error.to_string())?;
            let is_fine = answer.status().is_success();
            let text = answer.text().await.map_err(|error| error.to_string())?;
            if is_fine { Ok(text) } else { Err(text) }
        })?;
        let mut told: Value = serde_json::from_str(&told).map_err(|error| error.to_string())?;
        Ok(told["value"].take())
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask(Method::POST, path, body).unwrap_or_else(|wrong| panic!("{path} {body}: {wrong}"))
    }

    pub(crate) fn go(&self, address: &str) {
        self.post("/url", &json!({ "url": format!("http://{address}/") }));
    }

    /// What a script returns.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The text of an element; nothing if there is none.
    pub(crate) fn text(&self, css: &str) -> String {
        let script = format!("return document.querySelector({})?.textContent ?? ''", json!(css));
        self.run(&script).as_str().unwrap_or_default().trim().to_owned()
    }

    /// Waits until a script returns what is true.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, script: &str) -> Value {
        let start = Instant::now();
        loop {
            let value = self.run(script);
            if !matches!(value, Value::Null | Value::Bool(false))
                && value != json!("")
                && value != json!(0)
            {
                return value;
            }
            assert!(start.elapsed() < PATIENCE, "waited in vain: {what}\n{}", self.text("body"));
            thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until an element's text is this.
    #[track_caller]
    pub(crate) fn until_text(&self, css: &str, text: &str) {
        let script = format!(
            "return (document.querySelector({})?.textContent ?? '').includes({})",
            json!(css),
            json!(text)
        );
        self.until(&format!("{text:?} in {css}: {:?}", self.text(css)), &script);
    }

    /// Where an element is asked about.
    #[track_caller]
    fn find(&self, css: &str) -> String {
        self.element(&self.post("/element", &json!({ "using": "css selector", "value": css })))
    }

    fn element(&self, told: &Value) -> String {
        format!("/element/{}", told[ELEMENT].as_str().unwrap())
    }

    /// Clicks, as somebody with a mouse does.
    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        self.post(&format!("{}/click", self.find(css)), &json!({}));
    }

    /// Writes into a field, in the place of what is there.
    #[track_caller]
    pub(crate) fn write(&self, css: &str, text: &str) {
        let element = self.find(css);
        self.post(&format!("{element}/clear"), &json!({}));
        self.post(&format!("{element}/value"), &json!({ "text": text }));
    }

    /// Presses keys wherever the focus is.
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) {
        let active = self.ask(Method::GET, "/element/active", &Value::Null).unwrap();
        self.post(&format!("{}/value", self.element(&active)), &json!({ "text": keys }));
    }

    /// Asks the browser itself.
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// What the console has said since it was last asked.
    pub(crate) fn console(&self) -> Vec<String> {
        let told = self.post("/se/log", &json!({ "type": "browser" }));
        let line = |line: &Value| format!("{}: {}", line["level"], line["message"]);
        told.as_array().unwrap_or_else(|| panic!("{told}")).iter().map(line).collect()
    }

    /// Nothing went wrong, and nothing was asked for elsewhere.
    #[track_caller]
    pub(crate) fn is_content(&self) {
        let console = self.console();
        assert!(console.is_empty(), "{}", console.join("\n"));
        let elsewhere = self.run(
            "return performance.getEntriesByType('resource').map(one => one.name) \
             .filter(name => !name.startsWith(location.origin + '/') && !name.startsWith('data:'))",
        );
        assert_eq!(elsewhere, json!([]));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Else the browser outlives who drives it.
        let _ = self.ask(Method::DELETE, "", &Value::Null);
        let _ = self.chromedriver.kill();
        let _ = self.chromedriver.wait();
    }
}

fn capabilities(home: &TemporaryDirectory, device: Device) -> Value {
    let arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1200,900",
        &format!("--user-data-dir={}", home.path().join("profile").display()),
    ];
    let mut options = json!({ "binary": of_the_system("chromium"), "args": arguments });
    if let Some(width) = device.width {
        let metrics = json!({ "width": width, "height": 740, "pixelRatio": 2.0 });
        options["mobileEmulation"] = json!({ "deviceMetrics": metrics });
    }
    json!({
        "browserName": "chrome",
        "goog:chromeOptions": options,
        "goog:loggingPrefs": { "browser": "ALL" },
    })
}
