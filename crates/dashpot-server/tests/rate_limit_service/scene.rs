//! The service with a configuration, and how it is asked.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::client::PATIENCE;
use crate::door::{Answer, Door, Refusal, costing, descriptor, request};
use crate::rpc::call;
use crate::service::{Directory, Service, ended, until};

/// The directory for `--envoy-config`, inside of the service's own.
pub(crate) const CONFIG: &str = "config";

pub(crate) struct Scene {
    pub(crate) service: Service,
    pub(crate) grpc: SocketAddr,
    pub(crate) door: Door,
    // Last: the process is gone when it is removed.
    pub(crate) home: Directory,
}

/// The same case by each door, with a service of its own.
pub(crate) fn both(yaml: &str, arguments: &[&str], case: impl Fn(&Scene)) {
    for door in [Door::Grpc, Door::Json] {
        println!("by {door:?}");
        case(&Scene::start(yaml, arguments).by(door));
    }
}

/// The same by the rules of a file, with or without YAML.
pub(crate) fn both_by_rules(rules: &str, yaml: &str, case: impl Fn(&Scene)) {
    for door in [Door::Grpc, Door::Json] {
        println!("by {door:?}");
        case(&Scene::with_rules(rules, yaml, &[]).by(door));
    }
}

/// `dashpot serve` with nothing in its environment, on ports of its own.
pub(crate) fn command(home: &Directory, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.arg("serve").args(["--listen", "127.0.0.1:0"]).args(arguments);
    if !arguments.contains(&"--grpc-listen") {
        command.args(["--grpc-listen", "127.0.0.1:0"]);
    }
    command.env_clear().current_dir(home.path()).stdin(std::process::Stdio::null());
    // Many serve at once.
    command.env("DASHPOT_RESP_LISTEN", "127.0.0.1:0");
    command
}

/// A directory with these files of YAML.
pub(crate) fn home(files: &[(&str, &str)]) -> Directory {
    let home = Directory::new();
    fs::create_dir(home.path().join(CONFIG)).unwrap();
    for (name, text) in files {
        home.write(&format!("{CONFIG}/{name}"), text);
    }
    home
}

/// What it says if it does not start with such files.
pub(crate) fn refusal(files: &[(&str, &str)], arguments: &[&str]) -> String {
    let arguments = [&["--envoy-config", CONFIG], arguments].concat();
    let (code, told) = ended(command(&home(files), &arguments));
    assert_eq!(code, Some(2), "{files:?}: {told}");
    told
}

impl Scene {
    /// With one file of YAML; without any, if it is empty.
    pub(crate) fn start(yaml: &str, arguments: &[&str]) -> Self {
        if yaml.is_empty() {
            return Self::start_in(Directory::new(), arguments);
        }
        let arguments = [&["--envoy-config", CONFIG], arguments].concat();
        Self::start_in(home(&[("limits.yaml", yaml)]), &arguments)
    }

    /// The same with a rule file.
    pub(crate) fn with_rules(rules: &str, yaml: &str, arguments: &[&str]) -> Self {
        let home = home(&[("limits.yaml", yaml)]);
        home.write("rules.toml", rules);
        let mut all = vec!["--config", "rules.toml"];
        if !yaml.is_empty() {
            all.extend(["--envoy-config", CONFIG]);
        }
        Self::start_in(home, &[&all, arguments].concat())
    }

    pub(crate) fn start_in(home: Directory, arguments: &[&str]) -> Self {
        away_from_borders();
        let service = Service::run(command(&home, arguments));
        let grpc = until("the address of gRPC", PATIENCE, || {
            let greeting = service.stdout();
            let line = greeting.lines().find_map(|line| line.trim().strip_prefix("gRPC on "));
            line.map(|address| address.trim().parse().unwrap())
        });
        Self { service, grpc, door: Door::Grpc, home }
    }

    /// Asked by this door.
    pub(crate) fn by(self, door: Door) -> Self {
        Self { door, ..self }
    }

    pub(crate) fn try_ask(&self, request: &Value) -> Result<Answer, Refusal> {
        match self.door {
            Door::Grpc => {
                let asked = json!({"op": "limit", "to": self.grpc.to_string(), "request": request});
                over_grpc(&call(asked))
            }
            Door::Json => self.post(&request.to_string()),
        }
    }

    /// Whatever text, to `/json`.
    pub(crate) fn post(&self, body: &str) -> Result<Answer, Refusal> {
        let answer = self.service.client().post("/json", body);
        if !matches!(answer.status, 200 | 429) {
            return Err(Refusal { code: answer.status.to_string(), message: answer.body });
        }
        let kind = answer.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("application/json"), "{answer:?}");
        let told = Answer::new(&answer.json());
        assert_eq!(told.over, answer.status == 429, "{answer:?}");
        Ok(told)
    }

    #[track_caller]
    pub(crate) fn ask(&self, request: &Value) -> Answer {
        let answer = self.try_ask(request).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        let descriptors = request["descriptors"].as_array().unwrap();
        assert_eq!(answer.statuses.len(), descriptors.len(), "{answer:?}");
        let over = answer.statuses.iter().any(|status| status.over);
        assert_eq!(answer.over, over, "all are over if one is: {answer:?}");
        answer
    }

    #[track_caller]
    pub(crate) fn refused(&self, request: &Value) -> Refusal {
        match self.try_ask(request) {
            Ok(answer) => panic!("{request} is answered: {answer:?}"),
            Err(refusal) => refusal,
        }
    }

    /// One descriptor, once.
    #[track_caller]
    pub(crate) fn hit(&self, domain: &str, entries: &[(&str, &str)]) -> Answer {
        self.ask(&request(domain, &[descriptor(entries)]))
    }

    /// One descriptor, at this cost; 0 looks.
    #[track_caller]
    pub(crate) fn cost(&self, domain: &str, entries: &[(&str, &str)], hits: u64) -> Answer {
        self.ask(&request(domain, &[costing(entries, hits)]))
    }

    /// What is left of one descriptor's limit.
    #[track_caller]
    pub(crate) fn left(&self, domain: &str, entries: &[(&str, &str)]) -> u32 {
        self.cost(domain, entries, 0).statuses[0].remaining
    }

    /// One descriptor that nobody asked about is held to this limit, exactly: one more is denied and takes nothing, and
    /// then all of it passes. No border of a window can make a difference.
    #[track_caller]
    pub(crate) fn holds(&self, domain: &str, entries: &[(&str, &str)], count: u32, unit: &str) {
        let more = self.cost(domain, entries, u64::from(count) + 1);
        more.is_denied(count);
        let all = self.cost(domain, entries, u64::from(count.max(1)));
        if count > 0 {
            all.passes(0)
        } else {
            all.is_denied(0)
        }
        for answer in [more, all] {
            let limit = answer.status().limit();
            assert_eq!((limit.count, limit.unit.as_str()), (count, unit), "{entries:?}");
        }
    }

    /// Of one counter for each of these: using one up leaves the other whole.
    #[track_caller]
    pub(crate) fn apart(&self, domain: &str, one: &[(&str, &str)], other: &[(&str, &str)]) {
        let all = self.left(domain, one);
        assert!(all > 0 && all == self.left(domain, other), "both are whole");
        self.cost(domain, one, all.into()).passes(0);
        assert_eq!(self.left(domain, other), all, "{one:?} is not {other:?}");
    }
}

/// What `client.py` told of a call.
pub(crate) fn over_grpc(told: &Value) -> Result<Answer, Refusal> {
    let text = |name: &str| told["error"][name].as_str().unwrap().to_owned();
    match told.get("error") {
        Some(_) => Err(Refusal { code: text("code"), message: text("message") }),
        None => Ok(Answer::new(&told["response"])),
    }
}

/// Fixed windows of an hour and more end on the hour, all of them. Nothing begins shortly before.
fn away_from_borders() {
    away_from_border(3600, 40);
}

/// Waits for the next window, of so many seconds, if only so much is left of this one.
pub(crate) fn away_from_border(window: u64, least: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let left = Duration::from_secs(window - now.as_secs() % window);
    if left < Duration::from_secs(least) {
        thread::sleep(left + Duration::from_millis(100));
    }
}
