//! What tests with real servers lean on.

use std::env;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use dashpot_client::{Manners, MannersBuilder, Polite, PoliteLayer, Replay, Report};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tower::ServiceExt;
use tower_layer::Layer;

/// Longer than this nothing takes, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// By this header servers know which call an attempt belongs to.
pub(crate) const CALL: &str = "x-call";

/// Runs a test; one that takes too long fails.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("it ends") })
}

/// Where `scripts/readers` puts what it installs.
pub(crate) fn readers(packages: &[&str]) -> PathBuf {
    let home = match env::var_os("DASHPOT_READERS") {
        Some(home) => home.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/readers"),
    };
    for package in packages {
        let is_there = home.join("node_modules").join(package).exists();
        assert!(is_there, "{package} is not in {}; scripts/test installs it", home.display());
    }
    home
}

/// Manners whose chance is the same each time.
pub(crate) fn manners() -> MannersBuilder {
    Manners::builder().seed(1)
}

/// A client, by each of the two ways there are. Clones are the same one.
#[derive(Clone)]
pub(crate) enum Front {
    Reqwest(ClientWithMiddleware),
    Tower(Box<Polite<Client<HttpConnector, Replay<Full<Bytes>>>>>),
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) report: Report,
}

impl Front {
    /// A middleware of reqwest.
    pub(crate) fn reqwest(manners: Manners) -> Self {
        let client = ::reqwest::Client::builder().no_proxy().build().unwrap();
        Self::Reqwest(ClientBuilder::new(client).with(manners).build())
    }

    /// A layer around hyper's own client.
    pub(crate) fn tower(manners: Manners) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self::Tower(Box::new(PoliteLayer::new(manners).layer(client)))
    }

    /// Calls, and reads the answer.
    pub(crate) async fn get(&self, url: &str, call: usize) -> Outcome {
        let (status, report) = match self {
            Self::Reqwest(client) => {
                let answer = client.get(url).header(CALL, call).send().await.unwrap();
                let report = answer.extensions().get::<Report>().cloned();
                let status = answer.status();
                answer.bytes().await.unwrap();
                (status, report)
            }
            Self::Tower(polite) => {
                let request = Request::get(url).header(CALL, call).body(Full::default()).unwrap();
                let answer = polite.clone().oneshot(request).await.unwrap();
                let report = answer.extensions().get::<Report>().cloned();
                let status = answer.status();
                answer.into_body().collect().await.unwrap();
                (status, report)
            }
        };
        Outcome { status: status.as_u16(), report: report.expect("every answer has a report") }
    }

    /// So many calls, one after the other.
    pub(crate) async fn in_turn(&self, url: &str, calls: usize) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for call in 0..calls {
            outcomes.push(self.get(url, call).await);
        }
        outcomes
    }

    /// So many calls at once.
    pub(crate) async fn at_once(&self, url: &str, calls: usize) -> Vec<Outcome> {
        let mut tasks = Vec::new();
        for call in 0..calls {
            let (front, url) = (self.clone(), url.to_owned());
            tasks.push(tokio::spawn(async move { front.get(&url, call).await }));
        }
        let mut outcomes = Vec::new();
        for task in tasks {
            outcomes.push(task.await.unwrap());
        }
        outcomes
    }
}

/// Everybody got what it wanted.
pub(crate) fn assert_all_well(outcomes: &[Outcome]) {
    for (call, Outcome { status, report }) in outcomes.iter().enumerate() {
        assert_eq!(*status, 200, "call {call}: {report}");
        assert_eq!(report.gave_up(), None, "call {call}: {report}");
    }
}

/// How many attempts there were beyond the first of each.
pub(crate) fn repeated(outcomes: &[Outcome]) -> usize {
    outcomes.iter().map(|outcome| outcome.report.attempts() as usize - 1).sum()
}
