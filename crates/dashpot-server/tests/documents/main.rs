//! What the README and the pages about the service tell people to try, tried. Only the port is another, and
//! the program is the one that was built for the tests.

#[path = "gateways/page.rs"]
#[expect(dead_code, reason = "others use the rest")]
mod page;
#[path = "support/service.rs"]
mod service;

use std::path::Path;
use std::process::{Command, Output};

use dashpot_testkit::process::TemporaryDirectory;

use page::blocks;
use service::Service;

const RULES: &str = include_str!("../../../examples/tiers-and-priorities/rules.toml");

/// A service, and a shell in which commands of the documentation mean it.
struct Shell {
    service: Service,
    directory: TemporaryDirectory,
}

impl Shell {
    fn start(rules: &str) -> Self {
        let directory = TemporaryDirectory::new();
        // What the rules name is beside them.
        let example =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tiers-and-priorities");
        std::fs::copy(example.join("keys.toml"), directory.path().join("keys.toml")).unwrap();
        let service = Service::start(directory.path(), rules, &["--drain-delay", "0"]);
        Self { service, directory }
    }

    fn run(&self, line: &str) -> Output {
        let program = format!("'{}' ", env!("CARGO_BIN_EXE_dashpot"));
        let line = line
            .replace("127.0.0.1:8080", self.service.address())
            // A gateway's port for administrators answers the same.
            .replace("127.0.0.1:8090", self.service.address())
            .replace("cargo run --release -- ", &program)
            .replacen("dashpot rules", &format!("{program}rules"), 1);
        Command::new("timeout")
            .args(["20", "sh", "-c", &line])
            .env("DASHPOT_SERVER", format!("http://{}", self.service.address()))
            .current_dir(self.directory.path())
            .output()
            .unwrap()
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The commands of a page that ask a running service.
fn commands(page: &str) -> Vec<String> {
    let lines = blocks(page, "sh");
    let lines = lines.iter().flat_map(|block| block.lines()).map(|line| line.trim().to_owned());
    let asks = |line: &String| {
        let asks =
            line.starts_with("curl ") || line.contains("--server") || line.contains("key top");
        (asks || line.contains("rules list")) && !line.contains("serve ")
    };
    lines.filter(asks).collect()
}

#[test]
fn every_command_that_asks_is_answered() {
    let pages = [
        ("README", include_str!("../../../README.md"), 6),
        ("api", include_str!("../../../docs/api.md"), 2),
        ("operations", include_str!("../../../docs/operations.md"), 2),
        ("edge", include_str!("../../../docs/edge.md"), 2),
    ];
    let shell = Shell::start(RULES);
    std::fs::write(shell.directory.path().join("new.toml"), RULES).unwrap();
    for (name, page, least) in pages {
        let commands = commands(page);
        assert!(commands.len() >= least, "{name} has only {commands:?}");
        for command in commands {
            // A reservation is another each time.
            let is_settling = command.contains('…');
            let output = shell.run(&command);
            let told = told(&output);
            let fine =
                output.status.success() && !told.contains(" 400 ") && !told.contains(" 404 ");
            let unknown = is_settling && told.contains("no such reservation");
            assert!(fine || unknown, "{name}: {command}\n{told}");
            let is_right = told.contains("200 OK")
                || told.contains("429 Too Many")
                || !command.contains("curl -i");
            assert!(is_right, "{name}: {command}\n{told}");
        }
    }
}

/// What `serve` says to try can be tried.
#[test]
fn the_line_it_greets_with() {
    let shell = Shell::start(RULES);
    let readme = include_str!("../../../README.md");
    let line = readme.lines().find(|line| line.starts_with("  curl -i http://")).unwrap();
    let told = told(&shell.run(line.trim()));
    assert!(told.contains("200 OK") && told.contains(r#""outcome":"allow""#), "{told}");
}

/// The answer that the README and the API's page show is the one that is given, but for the time passed.
#[test]
fn the_answers_that_are_shown() {
    let shell = Shell::start(RULES);
    let readme = include_str!("../../../README.md");
    let api = include_str!("../../../docs/api.md");
    for (page, question) in [
        (readme, r#"{"key":"alice","limit":"2/min"}"#),
        (api, r#"{"key":"alice","limit":"10/s burst 20"}"#),
    ] {
        assert!(page.contains(question));
        let shown =
            blocks(page, "json").into_iter().find(|block| block.contains("outcome")).unwrap();
        let output = shell.run(&format!("curl -s 127.0.0.1:8080/v1/check -d '{question}'"));
        assert_eq!(told(&output), shown.trim_end());
    }
}

#[test]
fn the_function_at_the_edge_in_javascript() {
    let page = include_str!("../../../docs/edge.md");
    let [limited, worker] = &*blocks(page, "js") else { panic!("two blocks of js") };
    let shell = Shell::start("[[rule]]\nname = 'a'\nby = ['ip']\nlimits = ['2/min']\n");
    let address = shell.service.address();
    let script = format!(
        "{limited}\n{worker}
import {{ strict as assert }} from 'node:assert';
",
    )
    .replace("export default {", "const worker = {")
    .replace("127.0.0.1:8080", address)
        + "
const request = () => new Request('http://example.com/x?y=1', { headers: { 'cf-connecting-ip': '203.0.113.7' } });
const first = await worker.fetch(request());
assert.equal(first.status, 200);
assert.equal(await first.text(), 'hello\\n');
await worker.fetch(request());
const third = await worker.fetch(request());
assert.equal(third.status, 429);
assert.ok(Number(third.headers.get('retry-after')) >= 1);
console.log('right');
";
    let file = shell.directory.path().join("worker.mjs");
    // A machine under load may take longer than 50 ms.
    std::fs::write(&file, script.replace("timeout = 50", "timeout = 5000")).unwrap();
    let output = Command::new("timeout").args(["30", "node"]).arg(&file).output().unwrap();
    assert!(told(&output).contains("right"), "{}", told(&output));
}

#[test]
fn the_function_at_the_edge_in_python() {
    let page = include_str!("../../../docs/edge.md");
    let shell = Shell::start(RULES);
    let script = blocks(page, "python").concat().replace("127.0.0.1:8080", shell.service.address())
        + "
assert retry_after('alice', '2/min', 5) is None
assert retry_after('alice', '2/min', 5) is None
assert 1 <= retry_after('alice', '2/min', 5) <= 30
DASHPOT = 'http://127.0.0.1:1'
assert retry_after('alice', '2/min') is None, 'no answer lets it pass'
print('right')
";
    let file = shell.directory.path().join("function.py");
    std::fs::write(&file, script).unwrap();
    let output = Command::new("timeout").args(["30", "python3"]).arg(&file).output().unwrap();
    assert!(told(&output).contains("right"), "{}", told(&output));
}
