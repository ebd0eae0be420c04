//! `/openapi.json` is what the service does: schemathesis asks by it, rightly and wrongly, and compares.

#[path = "support/service.rs"]
mod service;
#[path = "support/tools.rs"]
mod tools;

use std::env;
use std::fs::{self, File};
use std::process::Stdio;
use std::time::Duration;

use dashpot_testkit::process::{TemporaryDirectory, start, until};
use service::Service;

const RULES: &str = r#"
[identity]
trusted_proxies = ["127.0.0.1/32"]

[[rule]]
name = "api"
match = { path = "/api/*" }
by = ["ip"]
limits = ["100/s"]
"#;

/// With a token, so that it shows whether one is asked for.
const TOKEN: &str = "a-token-for-the-test";

/// What does not apply, and why.
const SETTINGS: &str = r#"
# What fits the schema may still be wrong, or denied: a limit is a text with a grammar of its own, and
# whoever is over it gets a 429.
[checks]
positive_data_acceptance.enabled = false

# Gateways ask with any method, so there is none that it does not know.
[[operations]]
include-path = "/v1/forward-auth"
checks.unsupported_method.enabled = false

# It takes a rule file, and schemathesis writes no TOML.
[[operations]]
include-path = "/v1/rules/diff"
enabled = false

# It goes on for minutes, and schemathesis waits for the end.
[[operations]]
include-path = "/v1/events"
enabled = false
"#;

#[test]
fn the_service_does_what_its_description_says() {
    let directory = TemporaryDirectory::new();
    let service = Service::start(directory.path(), RULES, &["--admin-token", TOKEN]);
    let url = format!("http://{}/openapi.json", service.address());
    let log = directory.path().join("schemathesis.log");

    let settings = directory.path().join("schemathesis.toml");
    fs::write(&settings, SETTINGS).unwrap();

    let mut process = start(&tools::installed("schemathesis"), |command| {
        command.args(["--config-file", settings.to_str().unwrap(), "run", &url]);
        command.args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
        // All checks but those; the same requests each time, unless it may take longer.
        match env::var_os("DASHPOT_FULL") {
            None => command.args(["--max-examples", "100", "--seed", "2"]),
            Some(_) => command.args(["--max-examples", "1000"]),
        };
        command.args(["--generation-database", "none", "--request-timeout", "10"]);
        command.args(["--continue-on-failure", "--no-color"]);
        command.env("NO_PROXY", "127.0.0.1").env("COLUMNS", "120");
        let file = File::create(&log).unwrap();
        command.current_dir(directory.path()).stdin(Stdio::null());
        command.stdout(file.try_clone().unwrap()).stderr(file);
    });
    let status = until("schemathesis to end", Duration::from_secs(280), || {
        std::thread::sleep(Duration::from_millis(50));
        process.try_wait().unwrap()
    });
    let told = fs::read_to_string(&log).unwrap();
    assert!(status.success(), "{told}");
}
