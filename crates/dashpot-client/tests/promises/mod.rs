//! What the documentation promises, seen from outside.

#![allow(dead_code, reason = "not every test uses everything")]

mod bodies;
mod budget;
mod caution;
mod corners;
mod deadlines;
mod dropped;
mod forgotten;
mod in_flight;
mod lanes;
mod learning;
mod limits;
mod middleware;
mod pace;
mod property;
mod quotas;
mod reports;
mod robust;
mod safety;
mod settings;
mod shared;
mod tokens;
mod traced;
mod wild;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dashpot::{Clock, Timestamp};
use dashpot_client::{BoxError, Manners, MannersBuilder, NotSent, Polite, Report};
use http::{Request, Response};
use http_body_util::Full;
use proptest::prelude::ProptestConfig;
use tower::ServiceExt;

use crate::common::{Arrival, Server, World, get};

pub(crate) type Answer = Result<Response<Full<Bytes>>, BoxError>;

/// Where calls go that do not care.
pub(crate) const HERE: &str = "http://example.com/";

/// What came of a call.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// When it was over, counted from the beginning of the world.
    pub(crate) over: Duration,
    pub(crate) status: Option<u16>,
    pub(crate) not_sent: Option<NotSent>,
    /// What its error says, if there is one.
    pub(crate) error: Option<String>,
    pub(crate) report: Report,
}

/// A world with a server in it, and a client.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) server: Server,
    pub(crate) manners: Manners,
    start: Timestamp,
    outcomes: Arc<Mutex<BTreeMap<usize, Outcome>>>,
}

impl Scene {
    pub(crate) fn new(
        handler: impl FnMut(&Arrival) -> Answer + Send + 'static,
        settings: impl FnOnce(MannersBuilder) -> MannersBuilder,
    ) -> Self {
        let world = World::new();
        let server = Server::new(&world.clock, handler);
        let builder = Manners::builder().clock(world.clock.clone()).seed(7);
        let (manners, start) = (settings(builder).build(), world.clock.now());
        Self { world, server, manners, start, outcomes: Arc::default() }
    }

    /// The same, with a server so far away.
    pub(crate) fn way(mut self, way: Duration) -> Self {
        self.server = self.server.way(way);
        self
    }

    /// The same, with a server that takes its time.
    pub(crate) fn work(
        mut self,
        work: impl Fn(&Arrival) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.server = self.server.work(work);
        self
    }

    pub(crate) fn client(&self) -> Polite<Server> {
        Polite::new(self.server.clone(), self.manners.clone())
    }

    /// Makes a call after so long, and gives its number.
    pub(crate) fn call_at(&mut self, at: Duration, request: Request<Full<Bytes>>) -> usize {
        let (client, clock) = (self.client(), self.world.clock.clone());
        let (begins, start, outcomes) = (self.world.at(at), self.start, self.outcomes.clone());
        let number = Arc::new(Mutex::new(0));
        let known = number.clone();
        let task = self.world.spawn(async move {
            clock.until(begins).await;
            let outcome = match client.oneshot(request).await {
                Ok(response) => Outcome {
                    over: clock.now().since(start),
                    status: Some(response.status().as_u16()),
                    not_sent: None,
                    error: None,
                    report: response.extensions().get::<Report>().unwrap().clone(),
                },
                Err(error) => Outcome {
                    over: clock.now().since(start),
                    status: None,
                    not_sent: error.not_sent(),
                    error: Some(error.to_string()),
                    report: error.report().clone(),
                },
            };
            outcomes.lock().unwrap().insert(*known.lock().unwrap(), outcome);
        });
        *number.lock().unwrap() = task;
        task
    }

    /// Makes a call now, and gives its number.
    pub(crate) fn call(&mut self, request: Request<Full<Bytes>>) -> usize {
        self.call_at(self.world.time(), request)
    }

    /// Makes so many calls now, whose paths are their numbers.
    pub(crate) fn calls(&mut self, many: usize) -> Vec<usize> {
        (0..many).map(|number| self.call(get(&format!("{HERE}{number}")))).collect()
    }

    /// Makes a call and waits for what comes of it.
    pub(crate) fn ask(&mut self, request: Request<Full<Bytes>>) -> Outcome {
        let task = self.call(request);
        while !self.world.is_over(task) {
            self.world.settle();
            if !self.world.is_over(task) {
                self.world.clock.set(self.world.clock.next().expect("it waits for ever"));
            }
        }
        self.of(task)
    }

    /// What came of a call.
    pub(crate) fn of(&self, task: usize) -> Outcome {
        self.outcomes.lock().unwrap().get(&task).expect("it is over").clone()
    }

    /// What came of all calls that are over.
    pub(crate) fn all(&self) -> Vec<Outcome> {
        self.outcomes.lock().unwrap().values().cloned().collect()
    }

    /// When calls arrived.
    pub(crate) fn times(&self) -> Vec<Duration> {
        self.server.times(self.start)
    }

    /// The paths of what arrived, without the slash.
    pub(crate) fn paths(&self) -> Vec<String> {
        let arrivals = self.server.arrivals();
        arrivals.iter().map(|arrival| arrival.uri.path()[1..].to_owned()).collect()
    }
}

/// So many cases of a property, or many more if it is to be looked at for longer.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let times = if std::env::var_os("DASHPOT_FULL").is_some() { 50 } else { 1 };
    ProptestConfig::with_cases(usual * times)
}

/// Whatever comes, all is well.
pub(crate) fn well(_: &Arrival) -> Answer {
    crate::common::answer(200, &[])
}
