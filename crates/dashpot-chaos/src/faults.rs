//! What goes wrong: three at a time, each by a thread of its own, as the seed has it.

mod disk;
mod instances;
mod networks;
mod redis;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use reqwest::{Client, StatusCode};

use crate::fleet::Door;
use crate::soak::Soak;

/// Breaks something, and puts it back.
type Breaking = fn(&Soak, &mut fastrand::Rng);

/// Everything that breaks things, until it is late.
pub(crate) fn begin(soak: &Arc<Soak>) -> Vec<JoinHandle<()>> {
    let all: [Breaking; 3] =
        [redis::break_something, instances::break_something, networks::break_something];
    let begin = |(number, break_something): (u64, Breaking)| {
        let soak = soak.clone();
        let seed = soak.seed.wrapping_mul(1000).wrapping_add(number);
        thread::spawn(move || {
            let mut random = fastrand::Rng::with_seed(seed);
            loop {
                soak.sleep(random.f64().mul_add(2.0, 0.3));
                if soak.is_late() {
                    return;
                }
                break_something(&soak, &mut random);
            }
        })
    };
    (1..).zip(all).map(begin).collect()
}

fn tell(soak: &Soak, what: &str) {
    println!("{:8.3} s  {what}", soak.now());
}

/// Asks until it is so, and tells how long that took; nobody asks for ever.
fn await_well(soak: &Soak, what: &str, mut is_well: impl FnMut() -> bool) -> f64 {
    let begun = soak.now();
    while !is_well() {
        if soak.now() - begun > 30.0 {
            soak.wrong(&format!("{what}: not well again after 30 s"));
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    soak.now() - begun
}

/// Whether Redis decides what is asked here, wherever keys are: of so many some are on each node. Which keys is not the
/// seed's to say, or faults would depend on how often this is asked.
fn asks_redis(soak: &Soak, client: &Client, door: Door) -> bool {
    let address = soak.fleet.member(door).direct;
    (0..24).all(|_| {
        let key = format!("probe-{:016x}", fastrand::u64(..));
        let question =
            format!(r#"{{"request":{{"path":"/probe","headers":{{"x-key":"{key}"}}}}}}"#);
        let request = client.post(format!("http://{address}/v1/check")).body(question);
        let answer = soak.runtime.block_on(async { request.send().await });
        answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
    })
}

/// Who asks whether all is well again.
fn prober(soak: &Soak) -> Client {
    let _inside = soak.runtime.enter();
    Client::builder().timeout(Duration::from_millis(500)).build().expect("a client")
}
