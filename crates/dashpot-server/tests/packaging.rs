//! What is packaged fits the command. Nothing here needs a container engine or a network; CI builds
//! the image and starts it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;

const UNIT: &str = "packaging/dashpot.service";
const WORKFLOW: &str = ".github/workflows/ci.yml";
const GUIDE: &str = "docs/deploying.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).expect(file)
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn dashpot<A: AsRef<str>>(arguments: &[A]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(arguments.iter().map(AsRef::as_ref)).current_dir(root()).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn help() -> String {
    told(&dashpot(&["serve", "--help"]))
}

fn words(list: &Value) -> Vec<String> {
    serde_json::from_value(list.clone()).unwrap_or_else(|error| panic!("{error}: {list}"))
}

/// What comes after an instruction of the Dockerfile, on one line.
fn instruction(name: &str) -> String {
    let text = read("Dockerfile").replace("\\\n", " ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let found = lines.next_back().unwrap_or_else(|| panic!("no {name}"));
    found.trim().to_owned()
}

/// The value of a setting of the unit.
fn setting(name: &str) -> String {
    let unit = read(UNIT);
    let mut lines = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    lines.next().unwrap_or_else(|| panic!("no {name}")).to_owned()
}

/// The blocks of the guide in one language.
fn blocks(language: &str) -> Vec<String> {
    let guide = read(GUIDE);
    let parts = guide.split("```").skip(1).step_by(2);
    parts.filter_map(|block| block.strip_prefix(language)).map(str::to_owned).collect()
}

fn deployment() -> Value {
    yaml(blocks("yaml").first().expect("a deployment in the guide"))
}

/// Every way the service is started.
fn starts() -> Vec<Vec<String>> {
    let unit = setting("ExecStart");
    let unit = unit.strip_prefix("/usr/bin/dashpot ").expect("ExecStart=/usr/bin/dashpot …");
    vec![
        serde_json::from_str(&instruction("CMD")).unwrap(),
        words(&yaml(&read("compose.yaml"))["services"]["dashpot"]["command"]),
        unit.split(' ').map(str::to_owned).collect(),
        words(&deployment()["spec"]["template"]["spec"]["containers"][0]["args"]),
    ]
}

/// As in `15s`.
fn seconds(text: &str) -> u32 {
    text.strip_suffix('s').and_then(|number| number.parse().ok()).expect(text)
}

#[test]
fn every_start_is_understood() {
    for start in starts() {
        // Flags are looked at before help is shown.
        let output = dashpot(&[start.clone(), vec!["--help".into()]].concat());
        assert!(output.status.success(), "{start:?}: {}", told(&output));
        assert_eq!(start[0], "serve");
    }
    assert!(!dashpot(&["serve", "--no-such-flag", "--help"]).status.success());
}

#[test]
fn every_flag_and_variable_of_the_guide_is_known() {
    let help = help();
    let guide = read(GUIDE);
    // Docker's own.
    let others = ["--stop-timeout", "--no-healthcheck"];
    let flags = guide.split('`').filter(|code| code.starts_with("--") && !others.contains(code));
    let flags: Vec<_> = flags.filter_map(|code| code.split(' ').next()).collect();
    assert!(flags.contains(&"--listen"), "{flags:?}");
    for flag in flags {
        assert!(help.contains(&format!("{flag} ")), "{flag} in\n{help}");
    }
    for file in ["Dockerfile", "compose.yaml", UNIT, GUIDE] {
        let text = read(file);
        let part_of_name = |c: char| c.is_ascii_uppercase() || c == '_';
        let names = text.split(|c| !part_of_name(c)).filter(|name| name.starts_with("DASHPOT_"));
        for name in names {
            // With the value it has, unless that is secret.
            let known = ['=', ']'].iter().any(|end| help.contains(&format!("[env: {name}{end}")));
            assert!(known, "{name} of {file} in\n{help}");
        }
    }
}

#[test]
fn the_samples_are_fine() {
    // By itself, and with what compose adds.
    for rules in ["packaging/dashpot.toml", "packaging"] {
        let output = dashpot(&["rules", "check", rules]);
        assert!(output.status.success(), "{}", told(&output));
        assert!(told(&output).contains("nothing to advise"), "{}", told(&output));
    }
}

#[test]
fn what_is_mentioned_is_there() {
    let compose = yaml(&read("compose.yaml"));
    let dashpot = &compose["services"]["dashpot"];
    for volume in words(&dashpot["volumes"]) {
        let (source, _) = volume.split_once(':').unwrap();
        assert!(root().join(source).exists(), "{volume}");
    }
    let file = dashpot["environment"]["DASHPOT_ADMIN_TOKEN_FILE"].as_str().unwrap();
    let secret = file.strip_prefix("/run/secrets/").unwrap();
    assert_eq!(words(&dashpot["secrets"]), [secret]);
    // It is made on the spot, and must not be committed.
    let source = compose["secrets"][secret]["file"].as_str().unwrap();
    assert!(source.starts_with("./secrets/"), "{source}");
    assert!(read(".gitignore").lines().any(|line| line == "/secrets"));

    let store = read("packaging/store.toml");
    assert!(store.contains("redis://redis:") && compose["services"]["redis"].is_object());

    let credential = setting("LoadCredential");
    let (credential, _) = credential.split_once(':').unwrap();
    assert!(read(UNIT).contains(&format!("DASHPOT_ADMIN_TOKEN_FILE=%d/{credential}")));
    let state = format!("DASHPOT_STATE_FILE=%S/{}/", setting("StateDirectory"));
    assert!(read(UNIT).contains(&state));

    // Docker reads no others; and all of these, since manifests name tests and examples.
    let kept = read(".dockerignore");
    let left_out = kept.lines().filter(|line| !line.starts_with(['#', '!']));
    assert_eq!(left_out.collect::<Vec<_>>(), ["*", "**/target"]);
    for file in kept.lines().filter_map(|line| line.strip_prefix('!')) {
        assert!(root().join(file).exists(), "{file}");
    }
}

#[test]
fn there_is_one_version_of_the_compiler() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    let version = version.trim_matches('"');
    assert!(read("Dockerfile").contains(&format!("\nFROM rust:{version}-")), "{version}");
    let test = &yaml(&read(WORKFLOW))["jobs"]["test"];
    assert_eq!(test["env"]["RUSTUP_TOOLCHAIN"], version);
}

#[test]
fn ci_runs_what_is_run_here() {
    let workflow = yaml(&read(WORKFLOW));
    assert_eq!(workflow["permissions"], serde_json::json!({ "contents": "read" }));
    let steps = workflow["jobs"]["test"]["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step["run"] == ".ci/run"));
    assert!(root().join(".ci/run").exists());
    // A tag can be moved to something else.
    for job in workflow["jobs"].as_object().unwrap().values() {
        for step in job["steps"].as_array().unwrap() {
            let Some(action) = step["uses"].as_str() else { continue };
            let (_, hash) = action.split_once('@').unwrap();
            assert!(hash.len() == 40 && hash.bytes().all(|c| c.is_ascii_hexdigit()), "{action}");
        }
    }
}

#[test]
fn containers_have_no_more_rights_than_they_need() {
    let compose = yaml(&read("compose.yaml"));
    for (name, service) in compose["services"].as_object().unwrap() {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(words(&service["cap_drop"]), ["ALL"], "{name}");
        assert_eq!(words(&service["security_opt"]), ["no-new-privileges:true"], "{name}");
    }
    for port in words(&compose["services"]["dashpot"]["ports"]) {
        assert!(port.starts_with("127.0.0.1:"), "{port}");
    }
    assert!(compose["services"]["redis"].get("ports").is_none());
    let user = instruction("USER");
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}");
}

#[test]
fn nobody_kills_it_before_it_has_drained() {
    let help = help();
    let default = |flag: &str| {
        let (_, after) = help.split_once(flag).expect(flag);
        let (_, after) = after.split_once("[default: ").expect(flag);
        seconds(after.split(']').next().unwrap())
    };
    let drained = default("--drain-delay ") + default("--drain-timeout ");
    let compose = yaml(&read("compose.yaml"));
    let compose = compose["services"]["dashpot"]["stop_grace_period"].as_str().unwrap();
    for patience in [setting("TimeoutStopSec").as_str(), compose] {
        assert!(seconds(patience) > drained, "{patience} is not more than {drained}s");
    }
}

#[test]
fn the_health_check_tells_the_healthy_from_others() {
    let instruction = instruction("HEALTHCHECK");
    let (_, command) = instruction.split_once("CMD ").unwrap();
    let command: Vec<String> = serde_json::from_str(command).unwrap();
    let is_healthy = |port: u16| {
        let here = |word: &String| word.replace("/8080", &format!("/{port}"));
        let status = Command::new(&command[0]).args(command[1..].iter().map(here)).output();
        status.unwrap().status.success()
    };
    for (status, healthy) in [("200 OK", true), ("503 Service Unavailable", false)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
            String::from_utf8(request).unwrap()
        });
        assert_eq!(is_healthy(port), healthy, "{status}");
        let request = server.join().unwrap();
        assert!(request.starts_with("GET /healthz HTTP/1.1\r\nHost: "), "{request}");
        // Nobody is there any more.
        assert!(!is_healthy(port));
    }
}

#[test]
fn systemd_understands_the_unit() {
    // It insists that the program is there.
    let unit = read(UNIT).replace("/usr/bin/dashpot", env!("CARGO_BIN_EXE_dashpot"));
    let place = std::env::temp_dir().join(format!("dashpot-unit-{}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    let verify = |name: &str, unit: &str| {
        let file = place.join(name);
        fs::write(&file, unit).unwrap();
        let output =
            Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(file).output();
        told(&output.expect("systemd-analyze, which scripts/gateways installs"))
    };
    let right = verify("dashpot-right.service", &unit);
    let wrong = verify("dashpot-wrong.service", &unit.replace("Protect", "Protekt"));
    fs::remove_dir_all(place).unwrap();
    // What else it finds on this machine is not ours.
    assert!(!right.contains("dashpot-right"), "{right}");
    assert!(wrong.contains("ProtektSystem"), "{wrong}");
}
