use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{error, fmt};

use pin_project_lite::pin_project;
use sluicegate::Limiter;
use sluicegate::adapter::Sleep;
use sluicegate::key::{KeyBuf, Part};
use sluicegate::service::{Acquire, AcquireError};
use sluicegate::store::{Store, StoreError, Ticket};

use super::decide::{ahead, next};
use super::pacer::Pacer;
use crate::error::{BoxError, Refused};

pin_project! {
    /// Waits for its turn; see [`Pacer::turn`].
    #[must_use = "dropped, it gives its place back"]
    pub struct Turn<S: Store> {
        pacer: Pacer<S>,
        key: KeyBuf,
        cost: u64,
        // How long it waits at most; without an end if there is none.
        patience: Option<Duration>,
        // When it was called, by the store's clock, once that matters.
        begun: Option<u64>,
        // Counts it among those who wait.
        waiting: Option<Waiting<S>>,
        #[pin]
        step: Step<S>,
    }
}

pin_project! {
    #[project = StepProj]
    enum Step<S: Store> {
        Asking { #[pin] acquire: Acquire<S> },
        Pausing { #[pin] pause: Sleep<tokio::time::Sleep> },
    }
}

impl<S: Store + Clone> Pacer<S> {
    /// Waits for the turn of `key`. The place is booked when this is called. Dropping the future gives it back.
    ///
    /// The [`Ticket`](sluicegate::store::Ticket) that it resolves to settles what the call really cost. Dropped, it keeps
    /// the charge, and gives back a place of [`Limit::concurrent`](sluicegate::Limit::concurrent).
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub fn turn(&self, key: impl Part) -> Turn<S> {
        self.turn_n(key, 1)
    }

    /// [`turn`](Self::turn) at a cost.
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub fn turn_n(&self, key: impl Part, cost: u64) -> Turn<S> {
        self.turn_of(KeyBuf::of(key), cost)
    }

    fn turn_of(&self, key: KeyBuf, cost: u64) -> Turn<S> {
        let patience = self.patience.left(Duration::ZERO);
        self.asking(self.ask(&self.limiter(), key, cost, patience), key, cost, patience)
    }

    #[inline]
    pub(super) fn ask(
        &self,
        limiter: &Limiter<S>,
        key: KeyBuf,
        cost: u64,
        patience: Option<Duration>,
    ) -> Acquire<S> {
        limiter.acquire_key(key, cost, ahead(patience, self.look_again))
    }

    pub(super) fn asking(
        &self,
        acquire: Acquire<S>,
        key: KeyBuf,
        cost: u64,
        patience: Option<Duration>,
    ) -> Turn<S> {
        let (pacer, step) = (self.clone(), Step::Asking { acquire });
        Turn { pacer, key, cost, patience, begun: None, waiting: None, step }
    }
}

impl<S: Store + Clone> Future for Turn<S> {
    type Output = Result<Ticket<S>, PaceError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let refused = match this.step.as_mut().project() {
                StepProj::Asking { acquire } => match acquire.poll(cx) {
                    Poll::Ready(Err(AcquireError::Refused(refused))) => Some(refused.retry_after()),
                    Poll::Ready(other) => return Poll::Ready(other.map_err(PaceError::of)),
                    Poll::Pending => {
                        this.begun.get_or_insert_with(|| this.pacer.clock().now());
                        Waiting::enter(this.waiting, this.pacer)?;
                        return Poll::Pending;
                    }
                },
                StepProj::Pausing { pause } => {
                    ready!(pause.poll(cx));
                    None
                }
            };
            let now = this.pacer.clock().now();
            let waited = now.saturating_sub(*this.begun.get_or_insert(now));
            let waited = Duration::from_micros(waited);
            let left = this.patience.map(|patience| patience.saturating_sub(waited));
            match refused {
                Some(retry_after) => match next(left, this.pacer.look_again, retry_after) {
                    None => return Poll::Ready(Err(PaceError::Refused { retry_after })),
                    Some(time) => {
                        Waiting::enter(this.waiting, this.pacer)?;
                        let pause = Sleep::new(&this.pacer.clock(), time, tokio::time::sleep);
                        this.step.set(Step::Pausing { pause });
                    }
                },
                None => {
                    // By the limits as they are now.
                    let patience = ahead(left, this.pacer.look_again);
                    let acquire = this.pacer.limiter().acquire_key(*this.key, *this.cost, patience);
                    this.step.set(Step::Asking { acquire });
                }
            }
        }
    }
}

impl<S: Store> fmt::Debug for Turn<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// Counts as a waiting caller until it is dropped.
struct Waiting<S>(Pacer<S>);

impl<S: Store + Clone> Waiting<S> {
    /// Counts a caller that does not count yet.
    fn enter(waiting: &mut Option<Self>, pacer: &Pacer<S>) -> Result<(), PaceError> {
        if waiting.is_none() {
            let entered = pacer.enter().then(|| Self(pacer.clone()));
            *waiting = Some(entered.ok_or(PaceError::Crowded)?);
        }
        Ok(())
    }
}

impl<S> Drop for Waiting<S> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Why a caller did not get its turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PaceError {
    /// Its turn comes later than it waits for.
    Refused {
        /// When it would come, if that is known.
        retry_after: Option<Duration>,
    },
    /// It costs more than a limit ever admits.
    NeverFits,
    /// It would have to wait, and [too many](Pacer::most_waiting) others do.
    Crowded,
    /// The store failed to decide.
    Store(StoreError),
}

impl PaceError {
    fn of(error: AcquireError) -> Self {
        match error {
            AcquireError::Store(error) => Self::Store(error),
            _ => Self::NeverFits,
        }
    }

    const fn text(&self) -> &'static str {
        match self {
            Self::Refused { .. } => {
                "its turn by the limits of this program comes later than it waits for"
            }
            Self::NeverFits => "it costs more than a limit of this program ever admits",
            Self::Crowded => "it would have to wait for its turn, and too many others wait",
            Self::Store(_) => "the store that counts the requests failed",
        }
    }

    /// How the layer reports it.
    pub(super) fn into_error(self) -> BoxError {
        let retry_after = match self {
            Self::Store(error) => return error.into(),
            Self::Refused { retry_after } => retry_after,
            Self::NeverFits | Self::Crowded => None,
        };
        Refused::new(self.text(), retry_after).into()
    }
}

impl fmt::Display for PaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl error::Error for PaceError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}
