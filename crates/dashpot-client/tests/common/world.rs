//! Tasks and a clock, on one thread: what happens is the same each time, and takes no time.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::time::Duration;

use dashpot::{Clock, Timestamp};

use super::WorldClock;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A world in which time passes only when nobody has anything to do.
pub(crate) struct World {
    pub(crate) clock: WorldClock,
    start: Timestamp,
    tasks: Vec<Option<Task>>,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

struct Alert {
    task: usize,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Alert {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock().unwrap();
        if !ready.contains(&self.task) {
            ready.push_back(self.task);
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = WorldClock::default();
        let start = clock.now();
        Self { clock, start, tasks: Vec::new(), ready: Arc::default() }
    }

    /// How long it has been going on.
    pub(crate) fn time(&self) -> Duration {
        self.clock.now().since(self.start)
    }

    /// The moment so long after it began.
    pub(crate) fn at(&self, time: Duration) -> Timestamp {
        self.start.after(time)
    }

    /// Adds a task, and gives its number.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + 'static) -> usize {
        self.tasks.push(Some(Box::pin(task)));
        let number = self.tasks.len() - 1;
        self.ready.lock().unwrap().push_back(number);
        number
    }

    /// Drops a task, as somebody does who has lost interest.
    pub(crate) fn drop_task(&mut self, number: usize) {
        self.tasks[number] = None;
    }

    /// Whether a task is over, or was dropped.
    pub(crate) fn is_over(&self, number: usize) -> bool {
        self.tasks[number].is_none()
    }

    /// Lets everybody do what they can without time passing.
    pub(crate) fn settle(&mut self) {
        loop {
            let next = self.ready.lock().unwrap().pop_front();
            let Some(number) = next else { return };
            let Some(task) = &mut self.tasks[number] else { continue };
            let alert = Arc::new(Alert { task: number, ready: self.ready.clone() });
            if task.as_mut().poll(&mut Context::from_waker(&alert.into())).is_ready() {
                self.tasks[number] = None;
            }
        }
    }

    /// Goes on until so long after it began.
    pub(crate) fn run_until(&mut self, time: Duration) {
        let end = self.at(time);
        loop {
            self.settle();
            match self.clock.next().filter(|next| *next <= end) {
                Some(next) => self.clock.set(next),
                None => break,
            }
        }
        self.clock.set(end.max(self.clock.now()));
        self.settle();
    }

    /// Goes on until all tasks are over. Nobody may wait for what never comes.
    pub(crate) fn run(&mut self) {
        loop {
            self.settle();
            if self.tasks.iter().all(Option::is_none) {
                return;
            }
            let next = self.clock.next().expect("somebody waits for what never comes");
            self.clock.set(next);
        }
    }

    /// Runs one task to its end, and all others as far as they come.
    pub(crate) fn wait_for<T: 'static>(&mut self, task: impl Future<Output = T> + 'static) -> T {
        let result = Arc::new(Mutex::new(None));
        let kept = result.clone();
        let number = self.spawn(async move {
            let outcome = task.await;
            *kept.lock().unwrap() = Some(outcome);
        });
        loop {
            self.settle();
            if self.is_over(number) {
                return result.lock().unwrap().take().expect("it is over");
            }
            let next = self.clock.next().expect("it waits for what never comes");
            self.clock.set(next);
        }
    }
}
