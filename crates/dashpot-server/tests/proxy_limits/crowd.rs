//! Many who ask at once, what came of them, and when they reached the backend.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::caller::{Caller, get};

/// What came of a crowd.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) denied: usize,
    /// When those that were admitted reached the backend, since the first was sent.
    pub(crate) departures: Vec<Duration>,
    /// So long it took at most until all had been judged.
    pub(crate) judged: Duration,
}

/// Asks so many times at once, each on a connection of its own, and waits for all answers.
pub(crate) fn crowd(to: SocketAddr, backend: &Backend, count: usize) -> Outcome {
    backend.forget();
    let mut callers: Vec<_> = (0..count).map(|_| Caller::to(to)).collect();
    let sent = Instant::now();
    for caller in &mut callers {
        caller.send(get("/"));
    }
    let waiting: Vec<_> = callers
        .into_iter()
        .map(|mut caller| thread::spawn(move || (caller.answer().status, Instant::now())))
        .collect();
    let answers: Vec<_> = waiting.into_iter().map(|answer| answer.join().unwrap()).collect();
    let denials = answers.iter().filter(|(status, _)| *status == 429);
    let denied_at: Vec<Instant> = denials.map(|(_, at)| *at).collect();
    let departures: Vec<_> = backend.seen().iter().map(|seen| seen.at - sent).collect();
    let admitted = answers.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!(admitted, departures.len(), "who is admitted reaches the backend: {answers:?}");
    assert_eq!(admitted + denied_at.len(), count, "{answers:?}");
    let judged = denied_at.iter().max().map_or(Duration::ZERO, |last| *last - sent);
    Outcome { denied: denied_at.len(), departures, judged }
}

impl Outcome {
    pub(crate) fn admitted(&self) -> usize {
        self.departures.len()
    }

    /// How many more may be admitted than at one moment, at this rate, because the moment had some length.
    fn more(&self, interval: Duration) -> usize {
        (self.judged.as_nanos() / interval.as_nanos()) as usize
    }

    /// So many were admitted, of whom so many at once and the others one at a time.
    #[track_caller]
    pub(crate) fn assert_is(&self, who: &str, admitted: usize, at_once: usize, interval: Duration) {
        let most = admitted + self.more(interval);
        let told = format!("{who}: {self:?}");
        assert!((admitted..=most).contains(&self.admitted()), "{admitted} to {most}; {told}");
        for (nth, at) in self.departures.iter().enumerate() {
            let turn = interval * (nth + 1).saturating_sub(at_once) as u32;
            // nginx tells time by the millisecond, and has the last one's at hand.
            assert!(*at + Duration::from_millis(5) >= turn, "the {nth}th is early; {told}");
            let late = turn + self.judged + Duration::from_millis(300);
            assert!(*at < late, "the {nth}th is late; {told}");
        }
    }

    /// How many were not delayed, as far as that can be seen.
    pub(crate) fn undelayed(&self, interval: Duration) -> usize {
        self.departures.iter().filter(|at| **at < interval * 9 / 10).count()
    }
}
