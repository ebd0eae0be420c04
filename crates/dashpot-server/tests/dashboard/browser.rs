//! Chromium without a window, driven by chromedriver.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::process::{TemporaryDirectory, of_the_system, start};
use serde_json::{Value, json};
use thirtyfour::{
    By, Capabilities, CapabilitiesHelper, ChromeCapabilities, ChromiumLikeCapabilities, WebDriver,
    WebElement,
};
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
    driver: Option<WebDriver>,
    address: String,
    chromedriver: Child,
    _home: TemporaryDirectory,
}

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
        let driver_address = format!("http://127.0.0.1:{port}");
        let capabilities = capabilities(&home, device);
        let driver = runtime.block_on(WebDriver::new(&driver_address, capabilities)).unwrap();
        let browser = Self {
            runtime,
            driver: Some(driver),
            address: driver_address,
            chromedriver,
            _home: home,
        };
        browser.go(address);
        browser
    }

    fn driver(&self) -> &WebDriver {
        self.driver.as_ref().unwrap()
    }

    pub(crate) fn go(&self, address: &str) {
        self.runtime.block_on(self.driver().goto(format!("http://{address}/"))).unwrap();
    }

    /// What a script returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        let ran = self.runtime.block_on(self.driver().execute(script, Vec::new()));
        ran.unwrap_or_else(|error| panic!("{script}: {error}")).json().clone()
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

    fn find(&self, css: &str) -> WebElement {
        let found = self.runtime.block_on(self.driver().find(By::Css(css)));
        found.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    /// Clicks, as somebody with a mouse does.
    pub(crate) fn click(&self, css: &str) {
        let element = self.find(css);
        self.runtime.block_on(element.click()).unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Writes into a field, in the place of what is there.
    pub(crate) fn write(&self, css: &str, text: &str) {
        let element = self.find(css);
        self.runtime.block_on(element.clear()).unwrap();
        self.runtime.block_on(element.send_keys(text)).unwrap();
    }

    /// Presses keys wherever the focus is.
    pub(crate) fn press(&self, keys: &str) {
        let element = self.runtime.block_on(self.driver().active_element()).unwrap();
        self.runtime.block_on(element.send_keys(keys)).unwrap();
    }

    /// Asks the browser itself.
    pub(crate) fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.runtime.block_on(self.driver().cdp().send_raw(command, parameters)).unwrap()
    }

    /// What the console has said since it was last asked.
    pub(crate) fn console(&self) -> Vec<String> {
        let url = format!("{}/session/{}/se/log", self.address, self.driver().session_id());
        let told = self.runtime.block_on(async {
            let client = reqwest::Client::new();
            let body = json!({ "type": "browser" }).to_string();
            client.post(url).body(body).send().await.unwrap().text().await.unwrap()
        });
        let told: Value = serde_json::from_str(&told).unwrap();
        let line = |line: &Value| format!("{}: {}", line["level"], line["message"]);
        told["value"].as_array().unwrap_or_else(|| panic!("{told}")).iter().map(line).collect()
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
        if let Some(driver) = self.driver.take() {
            // Else the browser outlives who drives it.
            let _ = self.runtime.block_on(driver.quit());
        }
        let _ = self.chromedriver.kill();
        let _ = self.chromedriver.wait();
    }
}

fn capabilities(home: &TemporaryDirectory, device: Device) -> Capabilities {
    let mut capabilities = ChromeCapabilities::new();
    capabilities.set_binary(&of_the_system("chromium")).unwrap();
    let profile = format!("--user-data-dir={}", home.path().join("profile").display());
    for argument in [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1200,900",
        &profile,
    ] {
        capabilities.add_arg(argument).unwrap();
    }
    if let Some(width) = device.width {
        let metrics =
            json!({ "deviceMetrics": { "width": width, "height": 740, "pixelRatio": 2.0 } });
        capabilities.add_experimental_option("mobileEmulation", metrics).unwrap();
    }
    capabilities.set("goog:loggingPrefs", json!({ "browser": "ALL" })).unwrap();
    capabilities.into()
}
