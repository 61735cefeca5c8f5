use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluicegate_core::clock::Clock;
use sluicegate_core::{Limit, Memory};

use super::meter::Terms;
use super::state::State;
use super::wants::Wants;
use crate::amount::Amount;
use crate::client::Session;

#[cfg(feature = "client")]
use std::sync::Weak;

/// A limit whose numbers follow a lease, and the store that decides by it.
///
/// See the documentation of the [module](crate::limit). Clones are the same limit.
#[derive(Clone)]
pub struct LeasedLimit(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) limit: Limit,
    pub(super) clock: Clock,
    /// Counts the other limits of a request.
    pub(super) beside: Option<Memory>,
    state: Mutex<State>,
    on_need: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    /// What the limit follows, which lives as long as the limit.
    follows: Option<Box<dyn Any + Send + Sync>>,
}

/// A limit that is gone when nobody uses it any more.
#[cfg(feature = "client")]
#[derive(Clone, Default)]
pub(crate) struct WeakLimit(Weak<Shared>);

#[cfg(feature = "client")]
impl WeakLimit {
    pub(crate) fn upgrade(&self) -> Option<LeasedLimit> {
        self.0.upgrade().map(LeasedLimit)
    }
}

impl LeasedLimit {
    pub(super) fn new(
        limit: Limit,
        clock: Clock,
        beside: Option<Memory>,
        state: State,
        follows: Option<Box<dyn Any + Send + Sync>>,
    ) -> Self {
        let (state, on_need) = (Mutex::new(state), Mutex::new(None));
        Self(Arc::new(Shared { limit, clock, beside, state, on_need, follows }))
    }

    #[cfg(feature = "client")]
    pub(crate) fn downgrade(&self) -> WeakLimit {
        WeakLimit(Arc::downgrade(&self.0))
    }

    /// The limit to charge requests to, for a rule or a limiter that has this value as its store.
    ///
    /// Its own numbers have no meaning; decisions show those that are in force. Use it as it is: with other options it is
    /// another limit, which this store [refuses to keep](sluicegate_core::store::Store::check).
    pub fn limit(&self) -> Limit {
        self.0.limit
    }

    /// May use `capacity` from now on, for `ttl`, and after that `then`, until told otherwise.
    pub fn grant(&self, capacity: Amount, ttl: Duration, then: Amount) {
        let mut state = self.turn();
        if state.is_closed {
            return;
        }
        let ttl = u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX);
        let until = state.now.saturating_add(ttl);
        state.follow(Terms { held: capacity, until, then });
    }

    /// Uses what a session holds of a resource. Call this whenever the session has changed; `now` is the session's.
    pub fn follow(&self, now: u64, session: &Session, resource: &str) {
        let (granted, expires) = session.lease(resource);
        // The session's clock shows whole milliseconds, of which the last may be nearly over.
        let left = expires.saturating_sub(now).saturating_sub(1);
        self.grant(granted, Duration::from_millis(left), session.capacity(u64::MAX, resource));
    }

    /// Uses nothing any more, whatever is granted later. To do it twice is harmless.
    pub fn close(&self) {
        let mut state = self.turn();
        state.follow(Terms::NOTHING);
        state.is_closed = true;
    }

    /// What may be used at the moment.
    pub fn capacity(&self) -> Amount {
        self.turn().capacity()
    }

    /// What to ask the server for.
    pub fn wants(&self) -> Amount {
        let mut state = self.turn();
        let learned = state.learned();
        if state.is_closed { Amount::ZERO } else { state.wants.of(learned) }
    }

    /// Whether it counts places, of which a part is of no use.
    #[cfg(feature = "client")]
    pub(crate) fn is_gauge(&self) -> bool {
        self.0.limit.period().is_none()
    }

    /// The server is being told that so much is wanted.
    #[cfg(feature = "client")]
    pub(crate) fn told(&self, wants: Amount) {
        let mut state = self.turn();
        state.retries.told = Some(wants);
        state.is_needed = false;
    }

    /// In what time so much less may be wanted than the server was told that it should know.
    #[cfg(feature = "client")]
    pub(crate) fn falls_in(&self) -> Option<Duration> {
        self.turn().falls_in().map(Duration::from_micros)
    }

    /// Changes what to ask the server for.
    pub fn set_wants(&self, wants: impl Into<Wants>) {
        self.turn().wants = wants.into();
    }

    /// What counts as used until it ends, though it may be more than the capacity by now: the places of a gauge that are
    /// in use, or the capacity under which requests booked places in a queue that they have not left yet. The server has
    /// to know, so that it does not give the same to others.
    pub fn outstanding(&self) -> Amount {
        self.turn().outstanding()
    }

    /// Calls `listener` when something is asked while nothing may be used: an idle client is needed again, and should ask
    /// its server now and not at the next refresh. It is called once, and again only after something was granted. It must
    /// be quick, because the request waits for it. The limit of a [`Lease`](crate::Lease) has a listener already: its
    /// client asks the server again in growing intervals.
    pub fn on_need(&self, listener: impl Fn() + Send + Sync + 'static) {
        let mut on_need = self.0.on_need.lock().unwrap_or_else(PoisonError::into_inner);
        *on_need = Some(Box::new(listener));
    }

    pub(super) fn is_own(&self, limit: &Limit) -> bool {
        limit.id() == self.0.limit.id()
    }

    /// The state, at the present time.
    pub(super) fn turn(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.turn(&self.0.clock);
        state
    }

    /// Ends a decision: says that capacity is needed, if that is new.
    pub(super) fn decided(&self, mut state: MutexGuard<'_, State>) {
        let is_due = std::mem::take(&mut state.retries.is_due);
        let is_needed = match state.retries.told {
            // Paced also where nothing is granted for long: each request would otherwise be a question.
            Some(_) => is_due,
            None => state.capacity().is_zero(),
        };
        if state.is_needed || state.is_closed || !is_needed {
            return;
        }
        state.is_needed = true;
        drop(state);
        let on_need = self.0.on_need.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = &*on_need {
            listener();
        }
    }
}

#[cfg(feature = "client")]
impl fmt::Debug for WeakLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakLimit")
    }
}

impl fmt::Debug for LeasedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedLimit")
            .field("limit", &self.0.limit)
            .field("capacity", &self.capacity())
            .field("follows", &self.0.follows.is_some())
            .finish_non_exhaustive()
    }
}
