//! Limits that shrink while the service suffers, of which it hears from those who serve.

mod classes;
mod description;
mod doors;
mod fleet;
mod limits;
mod nothing_handed_out;
mod queues;
mod reloads;
mod settling;
mod stress;
mod telling;
mod wrong;

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Client, get};
use crate::service::{Directory, Service, until};

/// How long what comes by itself may take.
const SOON: Duration = Duration::from_secs(10);
/// By half and back in one tick; it looks at nothing but errors.
const QUICK: &str = "adaptive = { cpu = 'off', tick = '10ms', down = '50%', up = '200%' }\n";
const ASKED: &str = r#"{"request":{"path":"/"}}"#;
const LOOK: &str = r#"{"request":{"path":"/"},"cost":0}"#;

/// One rule of this name that adapts, with these lines.
fn quick(name: &str, lines: &str) -> String {
    format!("[[rule]]\nname = '{name}'\n{QUICK}{lines}\n")
}

/// A service that can be told how it is.
struct Patient {
    service: Service,
    home: Directory,
}

impl Patient {
    fn by(rules: &str) -> Self {
        Self::with(rules, &[])
    }

    fn with(rules: &str, flags: &[&str]) -> Self {
        let home = Directory::new();
        let service = Service::with_rules(&home, rules, flags);
        Self { service, home }
    }

    fn client(&self) -> Client {
        self.service.client()
    }

    fn health(&self) -> Value {
        let answer = self.client().get("/v1/health");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// How much of its limits a rule has.
    #[track_caller]
    fn factor(&self, rule: &str) -> f64 {
        let health = self.health();
        let rules = health["adaptive"].as_array().unwrap();
        let found = rules.iter().find(|told| told["rule"] == rule);
        found.unwrap_or_else(|| panic!("no {rule}: {health}"))["factor"].as_f64().unwrap()
    }

    #[track_caller]
    fn await_factor(&self, rule: &str, wanted: f64) {
        until(&format!("{rule} to have {wanted}"), SOON, || {
            (self.factor(rule) == wanted).then_some(())
        });
    }

    /// For a while it has this factor and no other.
    #[track_caller]
    fn keeps_factor(&self, rule: &str, wanted: f64) {
        for _ in 0..10 {
            assert_eq!(self.factor(rule), wanted, "{}", self.health());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[track_caller]
    fn tell(&self, told: &Value) {
        let answer = self.client().post("/v1/health", &told.to_string());
        assert_eq!(answer.status, 200, "{told}: {answer:?}");
    }

    /// All rules have half of their limits from now on.
    #[track_caller]
    fn suffers(&self) {
        self.turns(1, 0.5);
    }

    #[track_caller]
    fn recovers(&self) {
        self.turns(0, 1.0);
    }

    #[track_caller]
    fn turns(&self, errors: u32, factor: f64) {
        self.tell(&json!({"errors": errors, "for": "1h"}));
        until(&format!("all to have {factor}"), SOON, || {
            let health = self.health();
            let mut rules = health["adaptive"].as_array().unwrap().iter();
            rules.all(|rule| rule["factor"] == factor).then_some(())
        });
    }

    #[track_caller]
    fn look(&self) -> Answer {
        self.client().check(LOOK)
    }
}

/// How many of so many pass, one after another.
#[track_caller]
fn passed(client: &mut Client, asked: &str, count: usize) -> usize {
    (0..count).filter(|_| client.check(asked).allowed()).count()
}

/// What the first limit is said to be.
#[track_caller]
fn limit(answer: &Answer) -> u64 {
    answer.json()["policies"][0]["limit"].as_u64().unwrap_or_else(|| panic!("{answer:?}"))
}

/// A request with these lines beside `Host`.
fn with_lines(method: &str, path: &str, lines: &[&str], body: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let end = format!("{lines}content-length: {}\r\n\r\n{body}", body.len());
    get(path).replacen("GET", method, 1).trim_end().to_owned() + "\r\n" + &end
}
