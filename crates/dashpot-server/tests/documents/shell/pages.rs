//! A test for each page that has commands: they are run in their order, and what is shown after them is compared.

use crate::book::{Block, blocks, read, root};

use super::lines::{Line, expected_of, lines_of};
use super::stage::Stage;

/// Commands that need what a machine of tests does not have, by page and by a part of the line; who looks after them; and a
/// test of that.
const NOT_HERE: [(&str, &str, &str, &str); 5] = [
    (
        "docs/deploying.md",
        "docker ",
        "a container engine; the image's and compose's files are checked, and CI builds the image and starts it",
        "crates/dashpot-server/tests/packaging.rs",
    ),
    (
        "docs/deploying.md",
        "sudo ",
        "root and systemd; systemd-analyze checks the unit, and the rules are loaded",
        "crates/dashpot-server/tests/packaging.rs",
    ),
    (
        "docs/deploying.md",
        "kubectl ",
        "a cluster; the deployment is read, and its command line is tried",
        "crates/dashpot-server/tests/packaging.rs",
    ),
    (
        "docs/gateways/",
        "127.0.0.1:8000/",
        "that gateway",
        "crates/dashpot-server/tests/gateways/tried.rs",
    ),
    (
        "docs/envoy.md",
        "127.0.0.1:8000/",
        "Envoy",
        "crates/dashpot-server/tests/gateways/rate_limit/shown.rs",
    ),
];

/// Why a line of a page is not run here.
fn excuse(page: &str, command: &str) -> Option<usize> {
    NOT_HERE
        .iter()
        .position(|(pages, part, _, _)| page.starts_with(pages) && command.contains(part))
}

macro_rules! of_pages {
    ($($name:ident: $page:literal),* $(,)?) => {
        /// Pages whose commands are run.
        pub(crate) const RUN: &[&str] = &[$($page),*];

        $(
            #[test]
            fn $name() {
                run_page($page);
            }
        )*
    };
}

of_pages! {
    readme: "README.md",
    api: "docs/api.md",
    choosing: "docs/choosing.md",
    choosing_keys: "docs/choosing-keys.md",
    dashboard: "docs/dashboard.md",
    deploying: "docs/deploying.md",
    edge: "docs/edge.md",
    envoy: "docs/envoy.md",
    behind_caddy: "docs/gateways/caddy.md",
    behind_envoy: "docs/gateways/envoy.md",
    behind_nginx: "docs/gateways/nginx.md",
    behind_traefik: "docs/gateways/traefik.md",
    library: "docs/library.md",
    middleware: "docs/middleware.md",
    operations: "docs/operations.md",
    overload: "docs/overload.md",
    performance: "docs/performance.md",
    proxy: "docs/proxy.md",
    redis: "docs/redis.md",
    resp: "docs/resp.md",
    rules: "docs/rules.md",
    simulate: "docs/simulate.md",
}

fn run_page(page: &str) {
    let text = read(page);
    let mut stage = Stage::new();
    let blocks = blocks(&text);
    for block in &blocks {
        // Commands are run, not written.
        if let Some(file) = block.file.as_ref().filter(|_| block.kind != "sh") {
            stage.write(file, &block.text);
        }
    }
    provide_files(page, &stage);
    let mut ran = 0;
    let mut told = String::new();
    for block in &blocks {
        match &*block.kind {
            "toml" if is_rules(block) => stage.write("dashpot.toml", &block.text),
            "sh" => {
                for line in lines_of(&block.text) {
                    ran += 1;
                    if let Some(output) = run_line(page, &mut stage, &line) {
                        told = output;
                    }
                }
            }
            // What is shown right after commands is what the last of them says.
            "text" if block.follows => {
                let shown = block.text.as_str();
                // Of lists, only the answers: the words beside them are for readers.
                if !shown.starts_with("1) ") {
                    expected_of(shown, &told).unwrap_or_else(|wrong| panic!("{page}: {wrong}"));
                }
            }
            _ => {}
        }
    }
    assert!(ran > 0, "{page} has no commands");
}

/// Files that a page takes for granted.
fn provide_files(page: &str, stage: &Stage) {
    match page {
        "docs/choosing-keys.md" => stage.write(
            "dashpot.toml",
            "[identity]\ntrusted_proxies = ['10.0.0.0/8']\n[[rule]]\nname = 'a'\nby = ['ip']\nlimits = ['1/s']\n",
        ),
        "docs/operations.md" => stage.write("new.toml", &read("packaging/dashpot.toml")),
        "docs/rules.md" => {
            stage.write("old.toml", &read("packaging/dashpot.toml"));
            stage.write("new.toml", &read("packaging/dashpot.toml").replace("/min", "/h"));
        }
        _ => {}
    }
}

/// A rule file without a name is the one that programs look for; a key file and a manifest are none.
fn is_rules(block: &Block) -> bool {
    block.file.is_none() && (block.text.contains("[[rule]]") || block.text.contains("[proxy]"))
}

/// What it prints, if it is run.
fn run_line(page: &str, stage: &mut Stage, line: &Line) -> Option<String> {
    let command = &*line.command;
    if excuse(page, command).is_some() {
        return None;
    }
    // The program is there, or the test would not run; mentions.rs looks for examples and scripts.
    let of_the_workspace = ["cargo build ", "cargo doc ", "cargo run -p ", "scripts/"];
    if of_the_workspace.iter().any(|start| command.starts_with(start)) {
        return None;
    }
    let told = stage.run(command, line.status);
    expected_of(&line.prints.join("\n"), &told)
        .unwrap_or_else(|wrong| panic!("{page}: {command}: {wrong}"));
    Some(told)
}

/// Nothing is excused that is not there, and whoever looks after it is.
#[test]
fn what_is_not_run_here_is_looked_after() {
    for (nth, (pages, part, why, test)) in NOT_HERE.iter().enumerate() {
        let lines = RUN.iter().flat_map(|&page| {
            let shell = blocks(&read(page)).into_iter().filter(|block| block.kind == "sh");
            shell.flat_map(|block| lines_of(&block.text)).map(move |line| (page, line))
        });
        let mut excused = lines.filter(|(page, line)| excuse(page, &line.command) == Some(nth));
        assert!(excused.next().is_some(), "{pages}: {part} needs {why}, and is not there");
        assert!(root().join(test).exists(), "{test}");
        let name = pages.trim_start_matches("docs/").trim_end_matches('/');
        assert!(read(test).contains(name), "{test} is about {name}");
    }
}
