use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::clock::Clock;
use crate::key::{KeyBuf, Part};
use crate::limit::remote::{self, LimitOutcome};
use crate::limit::{Limit, LimitError, LimitStatus, Outcome, Receipt, Verdict};
use crate::store::charge::{Charge, Debit};
use crate::store::contract::delegate;
use crate::store::fallback::Ask;
use crate::store::set_spent::SetSpent;
use crate::store::{Answer, AtOnce, Store, StoreError};

/// A debt of one for each microsecond of the block. It admits one request while there is no debt.
const BLOCKED: Limit = Limit::per_second(1_000_000).burst(1).named("blocked");

/// The longest block: the debt stays exact.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A store in which keys can be blocked by hand, for a while.
///
/// A key that is [blocked](Self::block) is refused by every limit that is counted in this store, by the policy
/// `blocked`, and nothing is charged. What it has spent is kept. Clones block the same keys; so do the stores of
/// several processes, where they share `store`.
///
/// Each request costs one more look-up, which is made before the request is decided, not in one step with it: a
/// request that comes at the moment of the block may still be admitted. A blocked key does not wait for the end of the
/// block, however patient it is.
///
/// Put it inside of a [`Fallback`](crate::store::Fallback) or a [`Share`](crate::store::Share), not around it: a
/// block is not a budget that can be divided, and each of two stores keeps its own blocks. The limit name `blocked`
/// is reserved.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::{Limit, Memory};
/// use sluicegate::adapter::Charge;
/// use sluicegate::key::KeyBuf;
/// use sluicegate::store::{Blocks, Store};
///
/// let store = Blocks::new(Memory::new());
/// store.block("alice", Duration::from_secs(600)).now()?;
///
/// let charge = Charge::of(Limit::per_minute(60), KeyBuf::of("alice"), 1);
/// assert!(!store.take(&charge).now()?.is_admitted());
/// store.unblock("alice").now()?;
/// assert!(store.take(&charge).now()?.is_admitted());
/// # Ok::<(), sluicegate::store::StoreError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Blocks<S> {
    store: S,
}

impl<S> Blocks<S> {
    /// Counts in `store`, and keeps the blocks there.
    pub const fn new(store: S) -> Self {
        Self { store }
    }
}

impl<S: Store + Clone> Blocks<S> {
    /// Refuses `key` for `duration` from now, rounded up to a microsecond and at most 100 years. It replaces an
    /// existing block, whether that is longer or shorter. Zero unblocks.
    ///
    /// The key is one of a limiter. The keys of a rule, such as headers and addresses, have another form: use
    /// [`block_key`](Self::block_key) for them.
    pub fn block(&self, key: impl Part, duration: Duration) -> SetSpent<S> {
        self.block_key(KeyBuf::of(key), duration)
    }

    /// Ends the block of `key`, if there is one.
    pub fn unblock(&self, key: impl Part) -> SetSpent<S> {
        self.unblock_key(KeyBuf::of(key))
    }

    /// Like [`block`](Self::block), for the key of a rule, in a layer or a middleware. `key_of` in the module `adapter`
    /// of each adapter reads it from a request, and [`KeyBuf::from_view`] from a view of one.
    ///
    /// The block is for this key only. A block of an address does not affect a rule by address and route, which has
    /// another key.
    pub fn block_key(&self, key: KeyBuf, duration: Duration) -> SetSpent<S> {
        let micros = duration.min(LONGEST).as_nanos().div_ceil(1_000);
        let charge = Charge::of(BLOCKED, key, 0);
        SetSpent::new(self.store.clone(), charge, u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Ends the block of the key of a rule, if there is one.
    pub fn unblock_key(&self, key: KeyBuf) -> SetSpent<S> {
        self.block_key(key, Duration::ZERO)
    }
}

impl<S: Store + Clone> Blocks<S> {
    fn ask(&self, ask: Ask, charge: &Charge) -> Answer<BlocksFuture<S>> {
        let look = look(charge);
        match self.store.peek(&look) {
            Answer::Now(outcome) => after(ask, &self.store, &look, charge, outcome),
            Answer::Later(future) => Answer::Later(BlocksFuture {
                state: Asking::Looking {
                    future: Box::pin(future),
                    ask,
                    both: Box::new((look, charge.clone())),
                    store: self.store.clone(),
                },
            }),
        }
    }
}

/// The keys to check for blocks, each once.
fn look(charge: &Charge) -> Charge {
    let mut look = Charge::new();
    for debit in charge.debits() {
        if !look.debits().any(|other| other.key == debit.key) {
            look.add(BLOCKED, debit.key, 1).expect("no more keys than limits");
        }
    }
    look
}

/// The status of a key that is blocked for so long.
fn blocked(left: Option<Duration>) -> LimitStatus {
    let mut status = LimitStatus::fresh(BLOCKED);
    (status.remaining, status.refused) = (0, true);
    (status.window, status.reset, status.retry) = (left, left, left);
    status
}

/// The answer, once it is known whether a key is blocked.
fn after<S: Store>(
    ask: Ask,
    store: &S,
    look: &Charge,
    charge: &Charge,
    outcome: Result<Outcome, StoreError>,
) -> Answer<BlocksFuture<S>> {
    match outcome {
        Err(error) => return Answer::Now(Err(error)),
        Ok(outcome) if !outcome.is_admitted() => {
            let decision = outcome.decision(look);
            let is_blocked = |debit: &Debit| {
                let mut known = look.debits().zip(decision.statuses());
                known.any(|(of, status)| of.key == debit.key && status.refused)
            };
            let left = Some(outcome.retry_after().unwrap_or_default());
            let statuses = charge.debits().map(|debit| match is_blocked(debit) {
                true => LimitOutcome::of_other_numbers(blocked(left)),
                false => LimitOutcome::of_status(LimitStatus::fresh(debit.limit)),
            });
            let verdict = Verdict::Refuse { retry_after: left };
            return Answer::Now(Ok(remote::outcome(verdict, statuses)));
        }
        Ok(_) => {}
    }
    match ask.of(store, charge) {
        Answer::Now(outcome) => Answer::Now(outcome),
        Answer::Later(future) => Answer::Later(BlocksFuture::of(future)),
    }
}

impl<S: Store + Clone> Store for Blocks<S> {
    type Future = BlocksFuture<S>;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        self.ask(Ask::Take, charge)
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        self.ask(Ask::Peek, charge)
    }

    /// Blocks are kept.
    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        match self.store.reset(charge) {
            Answer::Now(outcome) => Answer::Now(outcome),
            Answer::Later(future) => Answer::Later(BlocksFuture::of(future)),
        }
    }

    delegate!(self => self.store; settle, follow, follow_status, clock);

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.store.check(&BLOCKED)?;
        self.store.check(limit)
    }
}

/// The outcome from [`Blocks`] that has to be awaited.
pub struct BlocksFuture<S: Store> {
    state: Asking<S>,
}

enum Asking<S: Store> {
    Looking { future: Pin<Box<S::Future>>, ask: Ask, both: Box<(Charge, Charge)>, store: S },
    Asked(Pin<Box<S::Future>>),
}

impl<S: Store> BlocksFuture<S> {
    fn of(future: S::Future) -> Self {
        Self { state: Asking::Asked(Box::pin(future)) }
    }
}

/// Nothing in it is pinned in place: the store's futures are boxed.
impl<S: Store> Unpin for BlocksFuture<S> {}

impl<S: Store> Future for BlocksFuture<S> {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.state {
                Asking::Looking { future, ask, both, store } => {
                    let outcome = ready!(future.as_mut().poll(cx));
                    match after(*ask, store, &both.0, &both.1, outcome) {
                        Answer::Now(outcome) => return Poll::Ready(outcome),
                        Answer::Later(next) => self.state = next.state,
                    }
                }
                Asking::Asked(future) => return future.as_mut().poll(cx),
            }
        }
    }
}

impl<S: Store<Future: AtOnce>> AtOnce for BlocksFuture<S> {
    fn outcome(self) -> Result<Outcome, StoreError> {
        match self.state {
            Asking::Asked(future) => Pin::into_inner(future).outcome(),
            Asking::Looking { future, ask, both, store } => {
                let outcome = Pin::into_inner(future).outcome();
                after(ask, &store, &both.0, &both.1, outcome).now()
            }
        }
    }
}

impl<S: Store> fmt::Debug for BlocksFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlocksFuture")
    }
}
