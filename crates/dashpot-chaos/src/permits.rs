//! Callers who hold permits for a moment and settle: never more of them at once than may be, and the permits of an
//! instance that died come back.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use tokio::time::sleep;

use crate::callers::{PATIENCE, chance, number, wait_for_next};
use crate::fleet::Door;
use crate::judge::{Answer, Asked};
use crate::rules::{PERMITS, PERMITS_AT_ONCE};
use crate::soak::{Soak, lock};
use crate::troubles::Trouble;

/// Nobody holds one for longer, in seconds, nor is late by more than the rest of it.
const HOLD: f64 = 0.3;
const HELD: f64 = 1.0;
/// What the dead held comes back within this: the lease of a permit, and that of a reservation nobody could settle.
const BACK: f64 = 30.0 + 10.0;

/// What is held under one key, as those who hold it see it, and when the latest was taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    now: u32,
    taken: f64,
    pub(crate) most: u32,
    /// The longest that all were denied, in seconds.
    pub(crate) longest: f64,
}

impl Held {
    /// One was taken; if nothing may have been forgotten of late, there are not too many.
    fn take(&mut self, now: f64, is_exact: bool) -> Result<(), String> {
        self.now += 1;
        self.taken = now;
        if !is_exact {
            return Ok(());
        }
        self.most = self.most.max(self.now);
        if self.now > PERMITS_AT_ONCE {
            return Err(format!("{} permits at once, {PERMITS_AT_ONCE} may be", self.now));
        }
        Ok(())
    }

    fn give_back(&mut self) {
        self.now = self.now.saturating_sub(1);
    }

    /// All are said to be held by others: for too long, if those were not answered.
    fn denied(&mut self, now: f64) -> Result<(), String> {
        let since = now - self.taken;
        self.longest = self.longest.max(since);
        if since > BACK {
            // Once.
            self.taken = now;
            return Err(format!("nobody got a permit for {since:.1} s"));
        }
        Ok(())
    }
}

/// At one service, which dies with all it holds, or at both.
pub(crate) fn call(soak: &Arc<Soak>) {
    for door in [Door::First, Door::Second] {
        (0..3).for_each(|_| hold(soak, door, "both"));
    }
    (0..5).for_each(|_| hold(soak, Door::First, "first"));
}

fn hold(soak: &Arc<Soak>, door: Door, key: &'static str) {
    let (soak, mut random) = (soak.clone(), chance(soak));
    let client = Client::builder().timeout(PATIENCE).retry(reqwest::retry::never()).build();
    let client = client.expect("a client");
    let address = soak.fleet.member(door).network.address();
    soak.runtime.clone().spawn(async move {
        while !soak.is_over() {
            wait_for_next(&mut random, PERMITS.calls).await;
            let question = format!(
                r#"{{"request":{{"path":"/permits","headers":{{"x-key":"{key}"}}}},"reserve":true}}"#
            );
            let sent = soak.now();
            let asked = client.post(format!("http://{address}/v1/check")).body(question).send().await;
            let (answer, body) = Answer::with_body(asked).await;
            let now = soak.now();
            let judged = match &answer {
                Answer::Allowed => held(&soak, key, |held| held.take(now, is_exact(&soak, now))),
                Answer::Denied => held(&soak, key, |held| held.denied(now)),
                _ => Ok(()),
            };
            if let Err(wrong) = judged {
                soak.wrong(&format!("{} {key}: {wrong}", PERMITS.name));
            }
            let is_held = matches!(answer, Answer::Allowed);
            let limits = vec![(format!("{} {key}", PERMITS.name), PERMITS)];
            Asked { door, limits, sent, call: number(), by_network: true }.judge(&soak, answer);
            if is_held {
                sleep(Duration::from_secs_f64(random.f64() * HOLD)).await;
                held(&soak, key, Held::give_back);
                settle(&soak, &client, door, &body, now).await;
            }
        }
    });
}

fn held<T>(soak: &Soak, key: &'static str, note: impl FnOnce(&mut Held) -> T) -> T {
    note(lock(&soak.permits).entry(key).or_default())
}

/// Whether neither Redis nor who holds permits may have forgotten any that are held.
fn is_exact(soak: &Soak, now: f64) -> bool {
    let forgets = [Trouble::Store, Trouble::Gone(Door::First), Trouble::Gone(Door::Second)];
    !forgets.into_iter().any(|trouble| soak.troubles.touched(trouble, now - HELD, now))
}

/// Until it is settled, or whoever held it is gone.
async fn settle(soak: &Soak, client: &Client, door: Door, told: &str, taken: f64) {
    let reservation =
        told.split_once(r#""reservation":""#).and_then(|(_, rest)| rest.split_once('"'));
    let Some((reservation, _)) = reservation else {
        return soak.wrong(&format!("permits at {}: no reservation in {told}", door.name()));
    };
    let address = soak.fleet.member(door).network.address();
    for _ in 0..50 {
        let body = format!(r#"{{"reservation":"{reservation}","used":0}}"#);
        let settled = client.post(format!("http://{address}/v1/settle")).body(body).send().await;
        match settled.map(|answer| answer.status().as_u16()) {
            // Settled before is what the second is told, if the answer to the first was lost.
            Ok(200 | 409 | 410) => return,
            Ok(404) if soak.troubles.touched(Trouble::Gone(door), taken, soak.now()) => return,
            Ok(503) | Err(_) => sleep(Duration::from_millis(100)).await,
            Ok(other) => return soak.wrong(&format!("settled at {}: {other}", door.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_too_many_is_told_unless_some_were_forgotten() {
        let mut held = Held::default();
        for _ in 0..PERMITS_AT_ONCE {
            held.take(1.0, true).unwrap();
        }
        held.give_back();
        held.take(1.1, true).unwrap();
        assert_eq!(held.take(1.2, true).unwrap_err(), "5 permits at once, 4 may be");
        held.take(1.2, false).unwrap();
    }

    #[test]
    fn permits_that_never_come_back_are_told() {
        let mut held = Held::default();
        held.take(10.0, true).unwrap();
        held.denied(10.0 + BACK).unwrap();
        let told = held.denied(10.1 + BACK).unwrap_err();
        assert_eq!(told, "nobody got a permit for 40.1 s");
    }
}
