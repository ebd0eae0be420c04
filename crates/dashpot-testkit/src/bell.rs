use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

/// Counts how often it is woken.
#[derive(Debug, Default)]
pub struct Bell(AtomicUsize);

impl Bell {
    /// How often it has rung so far.
    pub fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// A waker that rings it.
    pub fn waker(self: &Arc<Self>) -> Waker {
        self.clone().into()
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
