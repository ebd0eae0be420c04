//! An executor that polls those who were woken and nobody else, so that somebody who is forgotten
//! stays so; and that counts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dashpot_testkit::Bell;

pub(crate) struct Task<'a, T> {
    /// Until it is done or has left.
    future: Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    bell: Arc<Bell>,
    /// Rings that were answered by a poll.
    heard: usize,
    polls: usize,
}

impl<'a, T> Task<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'a) -> Self {
        Self { future: Some(Box::pin(future)), bell: Arc::default(), heard: 0, polls: 0 }
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        self.polls += 1;
        self.heard = self.bell.rings();
        let waker = self.bell.waker();
        let future = self.future.as_mut().expect("it is still there");
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            self.leave();
        }
        polled
    }

    pub(crate) fn leave(&mut self) {
        self.future = None;
    }

    /// Whether it would be polled: it is new, or was woken.
    pub(crate) fn is_due(&self) -> bool {
        self.polls == 0 || self.bell.rings() > self.heard
    }

    pub(crate) fn polls(&self) -> usize {
        self.polls
    }

    /// How many wakers of it are kept somewhere.
    pub(crate) fn wakers(&self) -> usize {
        Arc::strong_count(&self.bell) - 1
    }
}

/// Those who wait, by number.
pub(crate) struct Crowd<'a, T> {
    tasks: Vec<Option<Task<'a, T>>>,
}

impl<'a, T> Crowd<'a, T> {
    pub(crate) fn new() -> Self {
        Self { tasks: Vec::new() }
    }

    /// Adds one and polls it, so that it is in line before the next.
    pub(crate) fn add(&mut self, future: impl Future<Output = T> + Send + 'a) -> Vec<(usize, T)> {
        self.tasks.push(Some(Task::new(future)));
        self.run()
    }

    pub(crate) fn leave(&mut self, number: usize) {
        self.tasks[number] = None;
    }

    pub(crate) fn task(&self, number: usize) -> &Task<'a, T> {
        self.tasks[number].as_ref().expect("it is still there")
    }

    /// Polls those who are due until nobody is, and tells who is done, in order.
    pub(crate) fn run(&mut self) -> Vec<(usize, T)> {
        let mut done = Vec::new();
        loop {
            let is_due = |task: &Option<Task<'a, T>>| task.as_ref().is_some_and(Task::is_due);
            // From the back, so that order is the line's doing and not the executor's.
            let Some(number) = self.tasks.iter().rposition(is_due) else {
                return done;
            };
            if let Some(task) = &mut self.tasks[number]
                && let Poll::Ready(output) = task.poll()
            {
                self.tasks[number] = None;
                done.push((number, output));
            }
        }
    }

    /// Runs, and tells only who is done.
    pub(crate) fn done(&mut self) -> Vec<usize> {
        self.run().into_iter().map(|(number, _)| number).collect()
    }
}
