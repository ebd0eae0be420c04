//! A service, somebody who asks it, and a browser that shows it.

use std::process::Command;

use dashpot_testkit::process::TemporaryDirectory;

use crate::browser::{Browser, Device};
use crate::service::Service;

pub(crate) const TOKEN: &str = "correct-horse";

pub(crate) const RULES: &str = "[[rule]]\nname = 'api'\nby = ['ip']\nlimits = ['5/h']\n";

pub(crate) struct Scene {
    // Closed before what it shows.
    pub(crate) browser: Browser,
    pub(crate) service: Service,
    directory: TemporaryDirectory,
}

impl Scene {
    pub(crate) fn start(rules: &str, arguments: &[&str]) -> Self {
        Self::start_on(rules, arguments, Device::default())
    }

    /// Waits until the page says that it is connected.
    pub(crate) fn start_on(rules: &str, arguments: &[&str], device: Device) -> Self {
        let directory = TemporaryDirectory::new();
        let arguments = [&["--drain-delay", "0"], arguments].concat();
        let service = Service::start(directory.path(), rules, &arguments);
        let browser = Browser::open_on(service.address(), device);
        browser.until_text("#status", "Connected");
        Self { browser, service, directory }
    }

    /// Replaces the rules.
    pub(crate) fn rewrite(&self, rules: &str) {
        let (new, file) =
            (self.directory.path().join("new"), self.directory.path().join("dashpot.toml"));
        std::fs::write(&new, rules).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// Somebody asks so many times; tells the last status.
    pub(crate) fn ask(&self, ip: &str, times: usize) -> u16 {
        let body = format!(r#"{{"request":{{"path":"/","ip":"{ip}"}}}}"#);
        (0..times).map(|_| self.post("/v1/check", &body)).last().unwrap_or(0)
    }

    /// The status of an answer, to who is not the browser.
    pub(crate) fn post(&self, path: &str, body: &str) -> u16 {
        let url = format!("http://{}{path}", self.service.address());
        let mut curl = Command::new("curl");
        curl.args([
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--max-time",
            "20",
            &url,
            "-d",
            body,
        ]);
        String::from_utf8(curl.output().unwrap().stdout).unwrap().parse().unwrap()
    }

    /// A cell of a rule's row.
    #[track_caller]
    pub(crate) fn until_cell(&self, rule: &str, cell: &str, text: &str) {
        let css = format!("tr[data-rule=\"{rule}\"] [data-cell=\"{cell}\"]");
        let script =
            format!("return document.querySelector('{css}')?.textContent.trim() === '{text}'");
        self.browser.until(&format!("{cell} of {rule} to be {text}"), &script);
    }
}
