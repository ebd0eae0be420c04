//! Timers for how long somebody is waited for. A process that stood still, because it was paused or had no processor, hears that time is up before
//! it sees what has come meanwhile. So it looks once more before it blames anybody.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

/// How much longer is waited for those who may have been on time: as long as we were late, but not less and not more than this. The least is
/// a tick of the clock: before the next, all sockets are looked at.
const LEAST: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_millis(100);

pin_project! {
    /// Rings when somebody is too late, and it was not us.
    pub(crate) struct Bell {
        #[pin]
        sleep: Sleep,
        // When it was to ring.
        end: Instant,
        // Whether time is up, and it looks once more.
        was_due: bool,
    }
}

impl Bell {
    pub(crate) fn at(end: Instant) -> Self {
        Self { sleep: sleep_until(end), end, was_due: false }
    }

    pub(crate) fn after(patience: Duration) -> Self {
        Self::at(Instant::now() + patience)
    }

    /// When it was to ring.
    pub(crate) const fn end(&self) -> Instant {
        self.end
    }

    pub(crate) fn set(self: Pin<&mut Self>, end: Instant) {
        let this = self.project();
        this.sleep.reset(end);
        (*this.end, *this.was_due) = (end, false);
    }
}

impl Future for Bell {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        ready!(this.sleep.as_mut().poll(context));
        if mem::replace(this.was_due, true) {
            return Poll::Ready(());
        }
        let now = Instant::now();
        let late = now.saturating_duration_since(*this.end);
        this.sleep.as_mut().reset(now + late.clamp(LEAST, MOST));
        this.sleep.poll(context)
    }
}

/// What comes of it in this time.
pub(crate) async fn within<T>(patience: Duration, coming: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        came = coming => Some(came),
        () = Bell::after(patience) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long after this it rings, if time stands still for us for so long.
    async fn rings_after(patience: u64, still: u64) -> Duration {
        let begun = Instant::now();
        let mut bell = std::pin::pin!(Bell::after(Duration::from_millis(patience)));
        if still > 0 {
            tokio::time::advance(Duration::from_millis(still)).await;
        }
        bell.as_mut().await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn who_stood_still_looks_once_more() {
        for (patience, still, rings) in
            [(500, 0, 501), (500, 400, 501), (500, 540, 580), (500, 9000, 9100), (0, 0, 1)]
        {
            let rang = rings_after(patience, still).await;
            let rings = Duration::from_millis(rings);
            let tick = Duration::from_millis(2);
            assert!(rang >= rings && rang <= rings + tick, "{patience}, {still}: {rang:?}");
        }
    }
}
