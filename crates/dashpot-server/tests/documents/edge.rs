//! What docs/edge.md tells people to write in functions at the edge.

use std::fs;
use std::process::{Command, Output};

use dashpot_testkit::process::TemporaryDirectory;

use crate::book::blocks_of;
use crate::service::Service;

const PAGE: &str = "docs/edge.md";

/// Runs a script beside a service.
pub(crate) fn run(program: &str, name: &str, rules: &str, script: &str) -> String {
    let directory = TemporaryDirectory::new();
    let service = Service::start(directory.path(), rules, &["--drain-delay", "0"]);
    let file = directory.path().join(name);
    fs::write(&file, script.replace("127.0.0.1:8080", service.address())).unwrap();
    told(&Command::new("timeout").args(["30", program]).arg(&file).output().unwrap())
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn in_javascript() {
    let [limited, worker] = &*blocks_of(PAGE, "js") else { panic!("two blocks of js") };
    let script = format!(
        "{limited}\n{worker}
import {{ strict as assert }} from 'node:assert';
",
    )
    .replace("export default {", "const worker = {")
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
    // A machine under load may take longer than 50 ms.
    let script = script.replace("timeout = 50", "timeout = 5000");
    let rules = "[[rule]]\nname = 'a'\nby = ['ip']\nlimits = ['2/min']\n";
    let told = run("node", "worker.mjs", rules, &script);
    assert!(told.contains("right"), "{told}");
}

#[test]
fn in_python() {
    let script = blocks_of(PAGE, "python").concat()
        + "
assert retry_after('alice', '2/min', 5) is None
assert retry_after('alice', '2/min', 5) is None
assert 1 <= retry_after('alice', '2/min', 5) <= 30
DASHPOT = 'http://127.0.0.1:1'
assert retry_after('alice', '2/min') is None, 'no answer lets it pass'
print('right')
";
    let told = run("python3", "function.py", "", &script);
    assert!(told.contains("right"), "{told}");
}
