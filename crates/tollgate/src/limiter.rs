use std::future::Ready;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{error, fmt};

use pin_project_lite::pin_project;
use tollgate_core::{
    Answer, Charge, Clock, Decision, KeyBuf, Limits, Memory, Outcome, Part, Store, StoreError,
    Ticket, must_keep,
};

use crate::sleep::{Sleep, sleep};

/// Limits for code without HTTP: outgoing calls, jobs, messages.
///
/// ```
/// use tollgate::{Limit, Limiter};
///
/// let limiter = Limiter::new(Limit::per_minute(2));
///
/// assert!(limiter.take("alice").now()?.is_admitted());
/// assert!(limiter.take("alice").now()?.is_admitted());
/// assert!(!limiter.take("alice").now()?.is_admitted());
/// assert!(limiter.take("bob").now()?.is_admitted());
/// # Ok::<(), tollgate::StoreError>(())
/// ```
///
/// Clones share one store.
#[derive(Debug, Clone)]
pub struct Limiter<S = Memory> {
    limits: Limits,
    store: S,
    clock: Clock,
}

impl Limiter {
    /// Limits every key by `limits`, counted in the memory of this process.
    pub fn new(limits: impl Into<Limits>) -> Self {
        let store = Memory::new();
        Self { limits: limits.into(), clock: store.clock(), store }
    }
}

impl Limiter<Memory> {
    /// Spends `cost` on `key`, if every limit admits it, and says only whether and when: the quickest
    /// way, where nobody asks how the key stands.
    ///
    /// ```
    /// use tollgate::{Limit, Limiter};
    ///
    /// let limiter = Limiter::new(Limit::per_minute(1));
    /// assert!(limiter.spend("alice", 1)?.is_admitted());
    /// assert!(limiter.spend("alice", 1)?.retry_after().is_some());
    /// # Ok::<(), tollgate::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the store has no room for the key.
    #[inline(always)]
    pub fn spend(&self, key: impl Part, cost: u64) -> Result<Outcome, StoreError> {
        match self.limits.only() {
            Some(limit) => {
                // In place: moving what has just been written makes the processor wait.
                let mut buffer = KeyBuf::new();
                key.write(&mut buffer);
                self.store.spend(limit, &buffer, cost)
            }
            None => self.store.take(&self.charge(key, cost)).now(),
        }
    }
}

impl<S> Limiter<S> {
    /// Counts in `store`.
    ///
    /// # Panics
    ///
    /// When the store cannot keep one of the limits.
    #[must_use]
    #[track_caller]
    pub fn store<T: Store>(self, store: T) -> Limiter<T> {
        must_keep(&store, &self.limits);
        Limiter { limits: self.limits, clock: store.clock(), store }
    }
}

impl<S: Store> Limiter<S> {
    /// Spends one on `key`, if every limit admits it. Decided when called, not when first polled.
    ///
    /// A place of [`Limit::concurrent`](crate::Limit::concurrent) that is taken this way is held until
    /// it is [given](Self::give) back; [`acquire`](Self::acquire) does that by itself.
    pub fn take(&self, key: impl Part) -> Take<S::Future> {
        self.take_n(key, 1)
    }

    /// Spends `cost` on `key`, if every limit admits it.
    pub fn take_n(&self, key: impl Part, cost: u64) -> Take<S::Future> {
        let charge = self.charge(key, cost);
        Take::new(self.store.take(&charge), charge)
    }

    /// What [`take`](Self::take) would answer, without spending.
    pub fn peek(&self, key: impl Part) -> Take<S::Future> {
        let charge = self.charge(key, 1);
        Take::new(self.store.peek(&charge), charge)
    }

    /// Forgets what was spent on `key`; answers as [`peek`](Self::peek) afterwards.
    pub fn reset(&self, key: impl Part) -> Take<S::Future> {
        let charge = self.charge(key, 1);
        Take::new(self.store.reset(&charge), charge)
    }

    /// Gives back what `decision` charged to `key`, as far as that has not been recovered already;
    /// a refused decision charged nothing.
    pub fn give(&self, key: impl Part, decision: &Decision) {
        for (owed, standing) in self.charge(key, 1).owed().zip(decision.standings()) {
            if standing.charged > 0 {
                let mut owed = owed.clone();
                owed.cost = standing.charged;
                self.store.settle(&owed, &standing.mark, 0);
            }
        }
    }

    /// Waits until `key` is admitted, at most `max_wait`, in order of arrival. What cannot be admitted
    /// in that time is refused at once; so is what finds a leaky bucket's own
    /// [`queue`](crate::Limit::queue) full.
    ///
    /// The place is booked when this is called; dropping the future gives it back. The [`Ticket`] that
    /// it resolves to holds a place of [`Limit::concurrent`](crate::Limit::concurrent) until it is
    /// dropped.
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub fn acquire(&self, key: impl Part, max_wait: Duration) -> Acquire<S>
    where
        S: Clone,
    {
        self.acquire_n(key, 1, max_wait)
    }

    /// [`acquire`](Self::acquire) at a cost.
    ///
    /// # Panics
    ///
    /// When it has to wait outside of a tokio runtime with a timer.
    pub fn acquire_n(&self, key: impl Part, cost: u64, max_wait: Duration) -> Acquire<S>
    where
        S: Clone,
    {
        let charge = self.charge(key, cost).patient(max_wait);
        let state = match self.store.take(&charge) {
            Answer::Now(outcome) => Acquiring::of(outcome, charge, &self.store, &self.clock),
            Answer::Later(answer) => {
                Acquiring::Deciding { answer, charge, store: self.store.clone() }
            }
        };
        Acquire { state, clock: self.clock.clone() }
    }

    fn charge(&self, key: impl Part, cost: u64) -> Charge {
        let written = KeyBuf::of(key);
        let mut charge = Charge::new();
        for limit in self.limits.iter() {
            // `Limits` holds no more than fit, and none that are alike.
            charge.owe(*limit, written, cost).expect("limits of one list fit a charge");
        }
        charge
    }
}

pin_project! {
    /// A decision of a [`Limiter`].
    #[must_use = "a decision says whether to go ahead"]
    pub struct Take<F> {
        #[pin]
        state: Taking<F>,
    }
}

pin_project! {
    #[project = TakingProj]
    enum Taking<F> {
        Now { decision: Option<Result<Decision, StoreError>> },
        Later { #[pin] answer: F, charge: Charge },
    }
}

impl<F> Take<F> {
    fn new(answer: Answer<F>, charge: Charge) -> Self {
        Self {
            state: match answer {
                Answer::Now(outcome) => Taking::Now { decision: Some(told(outcome, &charge)) },
                Answer::Later(answer) => Taking::Later { answer, charge },
            },
        }
    }
}

fn told(outcome: Result<Outcome, StoreError>, charge: &Charge) -> Result<Decision, StoreError> {
    outcome.map(|outcome| outcome.decision(charge))
}

impl Take<Ready<Result<Outcome, StoreError>>> {
    /// The decision of a store in this process, which is there already.
    ///
    /// # Errors
    ///
    /// When the store has no room for the key.
    ///
    /// # Panics
    ///
    /// When it has been awaited before.
    pub fn now(self) -> Result<Decision, StoreError> {
        match self.state {
            Taking::Now { decision } => decision.expect(POLLED_AGAIN),
            Taking::Later { answer, charge } => told(answer.into_inner(), &charge),
        }
    }
}

impl<F: Future<Output = Result<Outcome, StoreError>>> Future for Take<F> {
    type Output = Result<Decision, StoreError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            TakingProj::Now { decision } => Poll::Ready(decision.take().expect(POLLED_AGAIN)),
            TakingProj::Later { answer, charge } => {
                answer.poll(cx).map(|outcome| told(outcome, charge))
            }
        }
    }
}

impl<F> fmt::Debug for Take<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Take")
    }
}

pin_project! {
    /// Waits for its turn; see [`Limiter::acquire`].
    #[must_use = "dropped, it gives its place back"]
    pub struct Acquire<S: Store> {
        #[pin]
        state: Acquiring<S>,
        clock: Clock,
    }
}

pin_project! {
    #[project = AcquiringProj]
    enum Acquiring<S: Store> {
        Deciding { #[pin] answer: S::Future, charge: Charge, store: S },
        Waiting { sleep: Sleep, ticket: Option<Ticket<S>> },
        Done { outcome: Option<Result<Ticket<S>, AcquireError>> },
    }
}

impl<S: Store + Clone> Acquiring<S> {
    fn of(outcome: Result<Outcome, StoreError>, charge: Charge, store: &S, clock: &Clock) -> Self {
        let outcome = match outcome {
            Ok(outcome) if outcome.is_admitted() => {
                let wait = outcome.wait();
                let ticket = Ticket::new(store.clone(), charge, outcome);
                if !wait.is_zero() {
                    return Self::Waiting { sleep: sleep(clock, wait), ticket: Some(ticket) };
                }
                Ok(ticket)
            }
            Ok(outcome) => Err(AcquireError::Refused(Box::new(outcome.decision(&charge)))),
            Err(error) => Err(AcquireError::Store(error)),
        };
        Self::Done { outcome: Some(outcome) }
    }
}

impl<S: Store + Clone> Future for Acquire<S> {
    type Output = Result<Ticket<S>, AcquireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                AcquiringProj::Deciding { answer, charge, store } => {
                    let outcome = ready!(answer.poll(cx));
                    Acquiring::of(outcome, std::mem::take(charge), store, this.clock)
                }
                AcquiringProj::Waiting { sleep, ticket } => {
                    ready!(Pin::new(sleep).poll(cx));
                    let mut ticket = ticket.take().expect(POLLED_AGAIN);
                    ticket.begin();
                    return Poll::Ready(Ok(ticket));
                }
                AcquiringProj::Done { outcome } => {
                    return Poll::Ready(outcome.take().expect(POLLED_AGAIN));
                }
            };
            this.state.set(next);
        }
    }
}

impl<S: Store> fmt::Debug for Acquire<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acquire")
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

/// Why [`Limiter::acquire`] did not admit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AcquireError {
    /// It cannot be admitted in time; the decision says when it could be.
    Refused(Box<Decision>),
    /// The store failed to decide.
    Store(StoreError),
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(decision) => match decision.retry_after() {
                Some(time) => write!(f, "refused: it would be admitted in {time:?}"),
                None => f.write_str("refused"),
            },
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl error::Error for AcquireError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            Self::Store(error) => error::Error::source(error),
        }
    }
}
