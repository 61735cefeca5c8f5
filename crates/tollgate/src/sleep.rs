//! The seam to the runtime: the one place that knows tokio's timer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tollgate_core::{Clock, ManualClock};

/// A wait by the store's clock: on tokio's timer, or until a test has turned a manual clock.
#[derive(Debug)]
pub(crate) enum Sleep {
    Machine(Pin<Box<tokio::time::Sleep>>),
    Manual { clock: ManualClock, until: u64 },
}

impl Sleep {
    pub(crate) fn new(clock: &Clock, time: Duration) -> Self {
        match clock.as_manual() {
            None => Self::Machine(Box::pin(tokio::time::sleep(time))),
            Some(clock) => {
                let until = clock.now().saturating_add(time.as_micros() as u64);
                Self::Manual { clock: clock.clone(), until }
            }
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *self {
            Self::Machine(sleep) => sleep.as_mut().poll(cx),
            Self::Manual { clock, until } => {
                ready!(clock.poll_reached(*until, cx));
                Poll::Ready(())
            }
        }
    }
}
