//! A small web application with a limit in it: dashpot's layer and tower-governor's in axum, express-rate-limit in express.
//! Each is asked over HTTP, with one thread to answer.

use std::env;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use axum::Router;
use axum::routing::get;
use dashpot_testkit::process::{TemporaryDirectory, free_port, start};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::PeerIpKeyExtractor;

use crate::Scale;
use crate::layer;
use crate::results::{self, Wanted};
use crate::servers::{Answers, Running, figure, is_answered, medians, millis, wait_for, wrk};
use crate::table::{Table, count, number, ratio};

/// The first argument of the process that serves one.
pub(crate) const APP: &str = "--app";

pub(crate) const PATH: &str = "/api/books";

/// What a caller may do: `allow` is whatever it likes, `deny` nothing after the first, `fifty` that many a second.
const WORKS: [(&str, &str); 2] = [("allowed", "allow"), ("denied", "deny")];

pub(crate) const SUBJECTS: [&str; 4] =
    ["dashpot's layer", "tower-governor", "express-rate-limit", "no limit"];

/// One of them on a port.
pub(crate) fn run(subject: &str, port: u16, limit: &str) -> Option<Running> {
    let child = if subject == "express-rate-limit" {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let modules = root.join("../target/readers");
        if !modules.join("node_modules/express-rate-limit").exists() {
            eprintln!("express-rate-limit is not there: scripts/readers installs it");
            return None;
        }
        start("node", |command| {
            command.env("NODE_ENV", "production");
            command.arg(root.join("src/app/express.mjs")).arg(modules);
            command.args([&port.to_string(), limit]).stdout(Stdio::null());
        })
    } else {
        let own = env::current_exe().ok()?;
        start(own.to_str()?, |command| {
            command.args([APP, subject, &port.to_string(), limit]).stdout(Stdio::null());
        })
    };
    wait_for(port);
    Some(Running(child))
}

/// In the child: serves until it is killed.
pub(crate) fn serve(args: &[String]) {
    let [subject, port, limit] = args else { panic!("not an application: {args:?}") };
    let app = Router::new().route(PATH, get(|| async { "hello" }));
    let app = match subject.as_str() {
        "no limit" => app,
        "tower-governor" => {
            let mut config = GovernorConfigBuilder::default().key_extractor(PeerIpKeyExtractor);
            match limit.as_str() {
                "allow" => config.per_nanosecond(100).burst_size(10_000_000),
                "deny" => config.per_second(3600).burst_size(1),
                _ => config.per_millisecond(20).burst_size(50),
            };
            let config = config.use_headers().finish().expect("a right configuration");
            app.layer(GovernorLayer::new(config))
        }
        _ => app.layer(layer::dashpot(
            "ietf",
            match limit.as_str() {
                "allow" => "10M/s",
                "deny" => "1/h",
                _ => "50/s",
            },
        )),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().expect("a port")));
        let listener = tokio::net::TcpListener::bind(address).await.expect("a free port");
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, app).await.expect("it serves");
    });
}

pub(crate) fn report(scale: Scale) {
    let (rounds, seconds) = match scale {
        Scale::Quick => (1, 2),
        Scale::Usual => (3, 2),
        Scale::Full => (5, 8),
    };
    let mut table =
        Table::new(["answers", "who", "requests/s", "÷ tower-governor", "p50 ms", "p99 ms"]);
    for (answers, limit) in WORKS {
        let of = format!("app {answers}");
        let measured = medians(
            &of,
            rounds,
            &SUBJECTS,
            |one| (*one).to_owned(),
            |subject| measure(subject, limit, seconds),
        );
        let mut bars = Vec::new();
        for (subject, [rate, half, most]) in SUBJECTS.iter().zip(&measured) {
            let ratio = ratio(*rate, measured[1][0]);
            let cells = [answers.to_owned(), (*subject).to_owned(), count(*rate), ratio];
            table.row(cells.into_iter().chain([number(*half), number(*most)]));
            bars.push(((*subject).to_owned(), *rate));
        }
        let compared = measured[0][0] / measured[1][0];
        results::goal(
            "P8",
            format!("an axum service over HTTP, {answers}"),
            Wanted::AtLeast(1.0),
            compared,
            "× tower-governor",
        );
        if limit == "allow" {
            for (subject, [rate, ..]) in SUBJECTS.iter().zip(&measured) {
                results::rate(subject, *rate);
            }
            results::chart("app", "An application with a limit", "requests a second", bars);
        }
    }
    table.print(
        "An application with a limit in it",
        "`wrk`, one thread and 50 connections, on the same machine; one caller, so one key; one thread to answer. axum with \
         dashpot's layer, with tower-governor's (which writes x-ratelimit headers), and without any; express on node with \
         express-rate-limit in memory. Headers of dashpot and express are the IETF draft's.",
    );
}

fn measure(subject: &str, limit: &str, seconds: u32) -> Option<[f64; 3]> {
    let port = free_port();
    let _running = run(subject, port, limit)?;
    let directory = TemporaryDirectory::new();
    let script = directory.path().join("ask.lua");
    std::fs::write(&script, "wrk.method = 'GET'\n").expect("a script");
    let url = format!("http://127.0.0.1:{port}{PATH}");
    wrk(&script, &url, 1);
    let told = wrk(&script, &url, seconds);
    let is_denied = limit == "deny" && subject != "no limit";
    let answers = if is_denied { Answers::Denied } else { Answers::Allowed };
    is_answered(&told, answers).then_some(())?;
    Some([figure(&told, "Requests/sec:"), millis(&told, "50%"), millis(&told, "99%")])
}
