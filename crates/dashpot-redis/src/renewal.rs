//! Permits are renewed while they are held, and given back until that works.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, Value};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::question::Question;
use crate::script;
use crate::store::Inner;

/// How many permits are renewed by one call, so that it is soon over.
const PERMITS_AT_ONCE: usize = 500;

/// How many calls are under way at a time.
const CALLS_AT_ONCE: usize = 128;

/// How often giving back is tried again.
const EVERY: Duration = Duration::from_secs(1);

/// How many calls are remembered to be made again. Beyond that permits lapse.
const MOST: usize = 100_000;

/// Permits that could not be given back yet, by the calls that do it.
#[derive(Debug, Default)]
pub(crate) struct Returning(Mutex<Vec<Return>>);

#[derive(Debug)]
struct Return {
    key: Vec<u8>,
    call: Cmd,
    /// When it has lapsed anyhow.
    until: Instant,
}

/// Permits that are out, or may be, and that nobody holds: they are given back unless this is settled.
pub(crate) struct Owed<'s> {
    store: &'s Inner,
    calls: Vec<(Vec<u8>, Cmd)>,
}

impl<'s> Owed<'s> {
    /// What this call would give back.
    pub(crate) fn new(store: &'s Inner, call: Option<(Vec<u8>, Cmd)>) -> Self {
        Self { store, calls: call.into_iter().collect() }
    }

    /// The permits of these questions, if they are to be taken.
    pub(crate) fn permits(store: &'s Inner, questions: &[&Question<'_>], taking: bool) -> Self {
        let mut calls = Vec::new();
        for question in questions.iter().filter(|one| taking && one.permit.is_some()) {
            let now = store.around();
            let undo = question.undo(now, now).into_iter();
            calls.extend(undo.map(|call| (question.key.clone(), call)));
        }
        Self { store, calls }
    }

    /// All is well: they are held by somebody, or are back.
    pub(crate) fn settled(mut self) {
        self.calls.clear();
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        for (key, call) in self.calls.drain(..) {
            self.store.give_back_later(&key, call);
        }
    }
}

impl Inner {
    /// Gives a permit back later on: it was not possible now.
    fn give_back_later(&self, key: &[u8], call: Cmd) {
        let mut returning = self.returning.0.lock();
        if returning.len() < MOST {
            let until = Instant::now() + self.settings.permit_lease;
            returning.push(Return { key: key.to_owned(), call, until });
        }
    }

    async fn give_back(self: &Arc<Self>) {
        let due = std::mem::take(&mut *self.returning.0.lock());
        let now = Instant::now();
        let due = due.into_iter().filter(|one| one.until > now);
        self.all_of(due, |store, one| async move {
            let spot = store.topology.spot(&one.key);
            match store.topology.call(spot, &one.call, store.patience()).await {
                Ok(_) => store.forget(&one.key),
                Err(_) => store.returning.0.lock().push(one),
            }
        })
        .await;
    }

    async fn renew(self: &Arc<Self>) {
        let lease = self.settings.permit_lease.as_micros();
        let some = |(key, permits): (Vec<u8>, Vec<String>)| {
            let some = permits.chunks(PERMITS_AT_ONCE).map(<[String]>::to_vec).collect::<Vec<_>>();
            some.into_iter().map(move |some| (key.clone(), some))
        };
        let all = self.permits.by_key().into_iter().flat_map(some);
        self.all_of(all, |store, (key, permits)| async move {
            let mut call = script::RENEW.call(std::iter::once(key.as_slice()));
            call.arg(lease.to_string()).arg(permits);
            let spot = store.topology.spot(&key);
            if let Ok(Value::Array(gone)) = store.topology.call(spot, &call, store.patience()).await
            {
                let gone = gone.into_iter().filter_map(|one| redis::from_redis_value(one).ok());
                gone.for_each(|part: String| store.permits.let_go(&part));
            }
        })
        .await;
    }

    /// Does something for all of these, many at a time.
    pub(crate) async fn all_of<T, F>(
        self: &Arc<Self>,
        all: impl Iterator<Item = T>,
        each: impl Fn(Arc<Self>, T) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for one in all {
            if tasks.len() >= CALLS_AT_ONCE {
                tasks.join_next().await;
            }
            tasks.spawn(each(self.clone(), one));
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Nobody waits for these in a hurry.
    pub(crate) fn patience(&self) -> Instant {
        Instant::now() + self.settings.connect_timeout
    }
}

/// Renews permits thrice before they would lapse, and gives back what is to be, for as long as there is a
/// store.
pub(crate) async fn keep_renewing(store: Weak<Inner>, lease: Duration) {
    let often = lease / 3;
    let mut renewed = Instant::now();
    loop {
        let started = Instant::now();
        sleep_until(started + EVERY.min(often)).await;
        let Some(store) = store.upgrade() else { return };
        store.give_back().await;
        if renewed.elapsed() + EVERY.min(often) / 2 >= often {
            renewed = Instant::now();
            store.renew().await;
        }
    }
}
