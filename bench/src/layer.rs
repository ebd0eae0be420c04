//! What a layer costs an axum service, and what finding rules costs.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use dashpot::MemoryStore;
use dashpot_http::RateLimitLayer;
use dashpot_rules::{Fact, Facts, RuleSet};
use tower::Service;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::PeerIpKeyExtractor;

use crate::child::rounds;
use crate::results::{self, Wanted};
use crate::table::{Table, count, number, ratio};
use crate::{Scale, machine};

const SUBJECTS: [&str; 6] = [
    "bare",
    "dashpot",
    "dashpot x-ratelimit",
    "dashpot no headers",
    "tower-governor",
    "tower-governor no headers",
];

/// Callers who take turns.
const CALLERS: u32 = 1000;

pub(crate) fn report(scale: Scale) {
    let count = if scale == Scale::Full { 7 } else { 3 };
    let mut table = Table::new(["layer", "allow", "of it the layer", "÷", "deny", "÷"]);
    let allow = rounds(count, "layer", &SUBJECTS, &["allow".to_owned()]);
    let deny = rounds(count, "layer", &SUBJECTS, &["deny".to_owned()]);
    let bare = allow[0].get(0);
    let own = |index: usize| allow[index].get(0) - bare;
    for (index, subject) in SUBJECTS.iter().enumerate() {
        let cells = if index == 0 {
            [number(bare), String::new(), String::new(), String::new(), String::new()]
        } else {
            let (taken, denied) = (own(index), deny[index].get(0));
            [
                number(allow[index].get(0)),
                number(taken),
                ratio(taken, own(1)),
                number(denied),
                ratio(denied, deny[1].get(0)),
            ]
        };
        table.row([(*subject).to_owned()].into_iter().chain(cells));
    }
    results::goal("P8", "the layer", Wanted::AtMost(1500.0), own(1), "ns of a processor");
    let ratio = own(1) / own(4);
    results::goal("P8", "the layer", Wanted::AtMost(1.0), ratio, "× tower-governor's time");
    table.print(
        "A layer in an axum service",
        "Nanoseconds of processor time for a request, from the router down to the handler and back, \
         without the network: a thousand callers by address, one limit. Headers are the current \
         IETF draft's, but where it says otherwise; tower-governor's are x-ratelimit. Allowed \
         requests reach the handler, denied ones do not. Wanted: at most 1500 for the layer.",
    );
}

/// `SUBJECT MIX`: nanoseconds on the processor per request.
pub(crate) fn child(args: &[&str]) -> Vec<f64> {
    let &[subject, mix] = args else { panic!("wrong arguments: {args:?}") };
    let deny = mix == "deny";
    let app = Router::new().route("/api/books", get(|| async { "hello" }));
    let limit = if deny { "1/h" } else { "1M/s" };
    let app = match subject {
        "bare" => app,
        "dashpot" => app.layer(dashpot("ietf", limit)),
        "dashpot x-ratelimit" => app.layer(dashpot("x-ratelimit", limit)),
        "dashpot no headers" => app.layer(dashpot("none", limit)),
        "tower-governor" | "tower-governor no headers" => {
            let mut config = GovernorConfigBuilder::default().key_extractor(PeerIpKeyExtractor);
            if deny {
                config.per_second(3600).burst_size(1);
            } else {
                config.per_nanosecond(1000).burst_size(1_000_000);
            }
            if subject.ends_with("no headers") {
                app.layer(GovernorLayer::new(config.finish().expect("a right configuration")))
            } else {
                let config = config.use_headers().finish().expect("a right configuration");
                app.layer(GovernorLayer::new(config))
            }
        }
        _ => panic!("there is no subject `{subject}`"),
    };
    let wanted =
        if deny && subject != "bare" { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async move {
        // As a server does it: else handlers are made into routes, and layers put on, each time.
        let mut app = app.with_state(());
        for caller in 0..CALLERS {
            ask(&mut app, caller).await;
        }
        for caller in 0..20_000 {
            assert_eq!(ask(&mut app, caller % CALLERS).await.status(), wanted, "{subject} {mix}");
        }
        let requests = 200_000;
        let before = machine::on_cpu();
        for caller in 0..requests {
            ask(&mut app, caller % CALLERS).await;
        }
        vec![(machine::on_cpu() - before) / f64::from(requests)]
    })
}

pub(crate) fn dashpot(style: &str, limit: &str) -> RateLimitLayer {
    let rules = format!(
        "[headers]
         styles = [\"{style}\"]
         [[rule]]
         name = \"api\"
         match = {{ path = \"/api/*\" }}
         by = [\"ip\"]
         limits = [\"{limit}\"]"
    );
    RateLimitLayer::from_rules(RuleSet::parse(&rules).expect("a right rule"), MemoryStore::new())
}

/// A request as a browser sends it.
async fn ask(app: &mut Router, caller: u32) -> Response<Body> {
    let peer = SocketAddr::from((caller.to_be_bytes(), 4711));
    let request = Request::get("/api/books")
        .header("host", "example.com")
        .header("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101")
        .header("accept", "application/json")
        .header("accept-encoding", "gzip, deflate, br")
        .extension(ConnectInfo(peer))
        .body(Body::empty())
        .expect("a right request");
    let answer: Result<_, Infallible> = app.call(request).await;
    match answer {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Finding rules among many.
pub(crate) fn report_rules(_: Scale) {
    let mut table = Table::new(["rules", "miss", "one matches", "one of 2500 on its path"]);
    for rules in [10, 1000, 10_000] {
        let figures = find(rules);
        if rules == 10_000 {
            results::goal(
                "also",
                "a miss among 10 000 rules",
                Wanted::AtMost(2000.0),
                figures[0],
                "ns",
            );
        }
        results::samples(format!("rules, {rules}: miss, one, one of 2500, ns"), figures.to_vec());
        let figures = figures.map(number);
        table.row([count(f64::from(rules))].into_iter().chain(figures));
    }
    table.print(
        "Finding rules",
        "Nanoseconds to find what applies to a request: rules by path, host, header and method. \
         Wanted: with 10 000 rules, a miss under 2000.",
    );
}

fn find(rules: u32) -> [f64; 3] {
    let mut text = String::new();
    for number in 0..rules {
        let what = match number % 4 {
            0 => format!("path = \"/service-{number}/users/{{id}}/posts/*\""),
            1 => format!("method = [\"GET\", \"POST\"], path = \"/v1/resource-{number}\""),
            2 => format!("host = \"tenant-{number}.example.com\", path = \"/api/*\""),
            _ => format!("path = \"/shared/api\", header = {{ x-tenant = \"{number}\" }}"),
        };
        text += &format!(
            "[[rule]]\nname = \"rule-{number}\"\nmatch = {{ {what} }}\nby = [\"ip\"]\nlimits = [\"9/s\"]\n"
        );
    }
    let rules = RuleSet::parse(&text).expect("right rules");
    let request = |path: &str, host: &str, tenant: &str| {
        Facts::new()
            .with(Fact::Method, "GET")
            .with(Fact::Path, path)
            .with(Fact::Host, host)
            .with(Fact::Header("x-tenant".into()), tenant)
    };
    let cases = [
        (request("/v1/elsewhere/users/7/posts/1", "www.example.com", "none"), 0),
        (request("/v1/resource-5", "www.example.com", "none"), 1),
        (request("/shared/api", "tenant-6.example.com", "7"), 1),
    ];
    cases.map(|(request, matches)| {
        let found = rules.explain(&request).rules.len();
        assert_eq!(found, matches, "it finds what there is");
        let times = 200_000;
        let start = Instant::now();
        for _ in 0..times {
            std::hint::black_box(rules.select(std::hint::black_box(&request)));
        }
        start.elapsed().as_nanos() as f64 / f64::from(times)
    })
}
