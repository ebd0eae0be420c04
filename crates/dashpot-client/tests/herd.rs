//! A thousand clients at one server. What `docs/client.md` shows is what they do; `UPDATE_PLOTS=1` draws it anew.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dashpot::{Clock, Limiter, MemoryStore, Policy, Timestamp};
use dashpot_client::{Manners, Polite, Told};
use dashpot_testkit::plot::{BLUE, Line, Panel, Plot, RED, is_drawn_in};
use tower::ServiceExt;

use crate::common::{Server, World, answer, get, millis, secs};

const CLIENTS: u64 = 1000;

/// So many a second can be served.
const RATE: usize = 100;

/// A slot of the plot.
const SLOT: Duration = millis(100);

/// A server that turns everybody away for ten seconds, and then serves what it can.
fn server(world: &World) -> Server {
    let clock = world.clock.clone();
    let policy = Policy::new("server", format!("{RATE}/s").parse().unwrap()).unwrap();
    let limiter = Limiter::on(policy, MemoryStore::with_clock(clock.clone()));
    let opens = world.at(secs(10));
    Server::new(&world.clock, move |_| {
        let closed = opens.since(clock.now());
        let wait = match closed.is_zero() {
            true => limiter.check("all").retry_after(),
            false => Some(closed),
        };
        match wait {
            None => answer(200, &[]),
            Some(wait) => {
                let seconds = wait.as_nanos().div_ceil(1_000_000_000).to_string();
                answer(429, &[("retry-after", &seconds)])
            }
        }
    })
}

/// What came of them.
struct Outcome {
    server: Server,
    start: Timestamp,
    served: usize,
    /// When the last of them was.
    end: Duration,
}

impl Outcome {
    /// How many arrived in each slot.
    fn arrivals(&self) -> Vec<usize> {
        let mut slots = vec![0; 300];
        for time in self.server.times(self.start) {
            let slot = time.as_nanos() / SLOT.as_nanos();
            slots[usize::try_from(slot).unwrap()] += 1;
        }
        slots
    }

    /// The most in a slot, after they were turned away.
    fn peak(&self) -> usize {
        self.arrivals()[50..].iter().copied().max().unwrap()
    }

    fn line(&self, name: &'static str, color: &'static str) -> Line {
        let point = |(slot, many): (usize, &usize)| (slot as f64 / 10.0, *many as f64);
        let points = self.arrivals().iter().enumerate().map(point).collect();
        Line { name: name.into(), color, points, steps: true }
    }
}

/// All clients call at once.
fn rush<F>(call: impl Fn(u64, Server) -> F) -> Outcome
where
    F: Future<Output = u16> + 'static,
{
    let mut world = World::new();
    let (start, server) = (world.clock.now(), server(&world));
    let served = Arc::new(Mutex::new((0, Duration::ZERO)));
    for client in 0..CLIENTS {
        let (call, clock) = (call(client, server.clone()), world.clock.clone());
        let served = served.clone();
        world.spawn(async move {
            if call.await == 200 {
                let mut served = served.lock().unwrap();
                *served = (served.0 + 1, clock.now().since(start));
            }
        });
    }
    world.run();
    let (served, end) = *served.lock().unwrap();
    Outcome { server, start, served, end }
}

/// Sleeps as long as it is told, and calls again.
fn obedient() -> Outcome {
    rush(|_, server| {
        let clock = server.clock().clone();
        async move {
            loop {
                // One call each time, by somebody who knows nothing.
                let manners = Manners::builder().clock(clock.clone()).attempts(1).build();
                let polite = Polite::new(server.clone(), manners);
                let response = polite.oneshot(get("http://example.com/")).await.unwrap();
                match Told::read(response.headers(), clock.now()).retry_after {
                    Some(wait) => clock.sleep(wait).await,
                    None => return response.status().as_u16(),
                }
            }
        }
    })
}

fn polite() -> Outcome {
    rush(|client, server| {
        let manners = Manners::builder()
            .clock(server.clock().clone())
            .seed(client)
            .attempts(20)
            .retry_floor("20/min".parse().unwrap());
        let polite = Polite::new(server, manners.build());
        async move { polite.oneshot(get("http://example.com/")).await.unwrap().status().as_u16() }
    })
}

/// A row of the table in the documentation.
fn row(name: &str, outcome: &Outcome) -> String {
    let (calls, end) = (outcome.server.arrivals().len(), outcome.end.as_secs_f64());
    format!("| {name} | {} | {calls} | {end:.1} s |", outcome.peak())
}

#[test]
fn those_who_were_turned_away_together_do_not_come_back_together() {
    let (obedient, polite) = (obedient(), polite());
    assert_eq!((obedient.served, polite.served), (1000, 1000));
    // To do what one is told is not enough: all come back in the same moment, and most in vain.
    assert_eq!(obedient.peak(), 1000);
    assert!(polite.peak() <= 150, "{}", polite.peak());
    assert!(polite.server.arrivals().len() < obedient.server.arrivals().len() * 2 / 3);
    // That costs some of them some time: at best, the last is served after 19 seconds.
    assert!(polite.end < secs(30), "{:?}", polite.end);
    // Nobody is too early.
    let early = polite.server.times(polite.start).into_iter();
    assert_eq!(early.filter(|time| *time < secs(10)).count(), 1000);

    let panel = |label: &'static str, line| Panel {
        label: label.into(),
        marks: vec![0.0, 250.0, 500.0, 750.0, 1000.0],
        lines: vec![line],
        ..Panel::default()
    };
    let per_slot = "calls in 0.1 s";
    let plot = Plot {
        title: "1000 clients are told to come back in 10 seconds".into(),
        seconds: 30.0,
        every: 5.0,
        incident: Some((0.0, 10.0, "nobody is served")),
        panels: vec![
            panel(per_slot, obedient.line("who do just that", RED)),
            panel(per_slot, polite.line("dashpot-client", BLUE)),
        ],
        ..Plot::default()
    };
    is_drawn_in(&plot.draw(), "client/herd.svg");
    let page = include_str!("../../../docs/client.md");
    for row in [row("who do just that", &obedient), row("`dashpot-client`", &polite)] {
        assert!(page.contains(&row), "the page is to say: {row}");
    }
}

/// All are told that nothing is left until the end of the minute.
#[test]
fn those_who_wait_for_the_same_reset_do_not_come_at_the_same_moment() {
    let mut world = World::new();
    let (clock, reset) = (world.clock.clone(), world.at(secs(60)));
    let server = Server::new(&world.clock, move |_| {
        let left = reset.since(clock.now()).as_nanos().div_ceil(1_000_000_000);
        match left {
            0 => answer(200, &[("ratelimit", r#""minute";r=1000;t=60"#)]),
            left => answer(200, &[("ratelimit", &format!(r#""minute";r=0;t={left}"#))]),
        }
    });
    for client in 0..CLIENTS {
        let manners = Manners::builder().clock(world.clock.clone()).seed(client).build();
        let (polite, clock) = (Polite::new(server.clone(), manners), world.clock.clone());
        world.spawn(async move {
            clock.sleep(millis(client * 20)).await;
            for _ in 0..2 {
                let response = polite.clone().oneshot(get("http://example.com/")).await.unwrap();
                assert_eq!(response.status(), 200);
            }
        });
    }
    world.run();
    let times = server.times(world.at(Duration::ZERO));
    let (before, after) = times.split_at(1000);
    assert!(before.iter().all(|time| *time < secs(20)));
    assert!(after.iter().all(|time| (secs(60)..secs(67)).contains(time)));
    let mut slots = [0; 70];
    for time in after {
        let slot = (*time - secs(60)).as_nanos() / SLOT.as_nanos();
        slots[usize::try_from(slot).unwrap()] += 1;
    }
    let peak = slots.into_iter().max().unwrap();
    assert!(peak <= 50, "{peak} in a tenth of a second");
}
