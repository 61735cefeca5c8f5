//! The settings of an admission, and the store that it asks.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::gate::Gate;
use crate::admission::known_limit::KnownLimit;
use crate::clock::Clock;
use crate::http::dialect::AnyDialect;
use crate::http::headers::Fields;
use crate::observe::observer::Observer;
use crate::rule::KnownLimits;
use crate::store::OnStoreError;
use crate::store::Store;
use crate::store::memory::Memory;

/// The default time that an adapter waits for a store in another process. It is for stores without a deadline of
/// their own.
const DEADLINE: Duration = Duration::from_secs(1);

/// All settings of a layer besides its rule, as [`admit`](Self::admit) uses them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Enforcer<S> {
    /// Where counts are kept.
    pub store: S,
    /// The store's clock. Requests wait by it.
    pub clock: Clock,
    /// What happens to requests that exceed a limit.
    pub gate: Gate,
    /// Which header fields are written.
    pub fields: Fields,
    /// The form of an API, whose fields are written beside these.
    pub dialect: AnyDialect,
    /// Whether decisions are left in the extensions of requests and responses.
    pub extensions: LeaveDecision,
    /// What happens when the store cannot decide.
    pub on_store_error: OnStoreError,
    /// How long to wait for a store in another process. `None` leaves that to the store.
    pub deadline: Option<Duration>,
    /// The status for a request that can never be admitted; `None` for 413 or 422, depending on what its cost
    /// measures.
    pub never_fits_status: Option<u16>,
    /// Until when a served request holds its places.
    pub hold: Hold,
    /// Reports decisions to operators.
    pub observer: Observer,
    /// The rule's limits that are known before any request. A charge to one of them is remembered by its index
    /// in this list.
    pub known: Arc<[KnownLimit]>,
}

/// A handle to an [`Enforcer`]: what a request under way keeps of the layer that admitted it.
pub trait AsEnforcer {
    /// The store of the enforcer.
    type Store: Store;

    /// The enforcer.
    fn as_enforcer(&self) -> &Enforcer<Self::Store>;
}

impl<S: Store> AsEnforcer for Enforcer<S> {
    type Store = S;

    #[inline]
    fn as_enforcer(&self) -> &Self {
        self
    }
}

impl<E: AsEnforcer + ?Sized> AsEnforcer for Arc<E> {
    type Store = E::Store;

    #[inline]
    fn as_enforcer(&self) -> &Enforcer<E::Store> {
        (**self).as_enforcer()
    }
}

impl<E: AsEnforcer + ?Sized> AsEnforcer for Rc<E> {
    type Store = E::Store;

    #[inline]
    fn as_enforcer(&self) -> &Enforcer<E::Store> {
        (**self).as_enforcer()
    }
}

/// When a served request gives its places of [`Limit::concurrent`](crate::Limit::concurrent) back, and when a running
/// cost is settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hold {
    /// When the response's body has ended, failed or been dropped, or the upgraded connection has closed. The
    /// default.
    #[default]
    End,
    /// When the head of the response is there. A body that is sent afterwards, or an upgraded connection, holds
    /// nothing, and a running cost is settled with its value at that time. What
    /// [settles at the end](crate::rule::By::settle_at_end) waits for it all the same.
    Head,
}

/// Where decisions are left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaveDecision {
    /// Nowhere.
    Nowhere,
    /// In the extensions of requests, for handlers, and in those of responses to requests that exceed a limit. The
    /// default: the extensions of other responses are empty most of the time, and cost three allocations to fill.
    #[default]
    InRequests,
    /// In the extensions of all responses too, for layers further out.
    Everywhere,
}

impl From<bool> for LeaveDecision {
    fn from(everywhere: bool) -> Self {
        if everywhere { Self::Everywhere } else { Self::Nowhere }
    }
}

impl Enforcer<Memory> {
    /// Counts in the memory of this process.
    ///
    /// # Panics
    ///
    /// If a limit is a log that is [too long](crate::Limit::check_length).
    #[track_caller]
    pub fn in_memory(rule: &impl KnownLimits) -> Self {
        Self::new(Memory::new(), rule)
    }
}

impl<S: Store> Enforcer<S> {
    /// The default settings.
    ///
    /// # Panics
    ///
    /// If the store cannot keep a limit of `rule`.
    #[track_caller]
    pub fn new(store: S, rule: &impl KnownLimits) -> Self {
        must_keep(&store, rule);
        let mut known = Vec::new();
        rule.each_limit(&mut |limit| known.push(KnownLimit::new(limit)));
        Self {
            known: known.into(),
            clock: store.clock(),
            store,
            gate: Gate::default(),
            fields: Fields::default(),
            dialect: AnyDialect::default(),
            extensions: LeaveDecision::default(),
            on_store_error: OnStoreError::default(),
            deadline: Some(DEADLINE),
            never_fits_status: None,
            hold: Hold::default(),
            observer: Observer::default(),
        }
    }
}

impl<S> Enforcer<S> {
    /// The same settings with another store.
    ///
    /// # Panics
    ///
    /// If the store cannot keep a limit of `rule`.
    #[must_use]
    #[track_caller]
    pub fn with_store<T: Store>(&self, store: T, rule: &impl KnownLimits) -> Enforcer<T> {
        must_keep(&store, rule);
        self.settings().map_store(|()| store)
    }

    /// Writes the fields of `dialect` too. None changes nothing.
    ///
    /// # Panics
    ///
    /// If `dialect` tells of no policy, or of one that none of the rule's limits has.
    #[track_caller]
    pub fn speak(&mut self, dialect: impl Into<AnyDialect>) {
        let dialect = dialect.into();
        if let Some(speaking) = dialect.get() {
            let limits = self.known.iter().map(|known| *known.limit());
            speaking.check(&Vec::from_iter(limits));
            self.dialect = dialect;
        }
    }

    /// Only the settings.
    fn settings(&self) -> Enforcer<()> {
        Enforcer {
            clock: self.clock.clone(),
            store: (),
            gate: self.gate.clone(),
            fields: self.fields,
            dialect: self.dialect.clone(),
            extensions: self.extensions,
            on_store_error: self.on_store_error,
            deadline: self.deadline,
            never_fits_status: self.never_fits_status,
            hold: self.hold,
            observer: self.observer.clone(),
            known: Arc::clone(&self.known),
        }
    }

    /// The same settings with the store that `map` makes of the present one. It must keep the same limits.
    #[must_use]
    pub fn map_store<T: Store>(self, map: impl FnOnce(S) -> T) -> Enforcer<T> {
        let store = map(self.store);
        Enforcer {
            clock: store.clock(),
            store,
            gate: self.gate,
            fields: self.fields,
            dialect: self.dialect,
            extensions: self.extensions,
            on_store_error: self.on_store_error,
            deadline: self.deadline,
            never_fits_status: self.never_fits_status,
            hold: self.hold,
            observer: self.observer,
            known: self.known,
        }
    }
}

/// A status that an operator chose for requests that can never be admitted.
///
/// # Panics
///
/// If it is not a client error (400 to 499), or is 429, which invites the client to try again.
#[track_caller]
pub fn client_error(status: u16) -> Option<u16> {
    assert!(
        matches!(status, 400..=499) && status != 429,
        "{status} does not tell the client that its request can never be admitted: use one from 400 to 499, and not 429",
    );
    Some(status)
}

/// Panics at the start if the store cannot keep the limits.
///
/// # Panics
///
/// If the store cannot keep one of them.
#[track_caller]
fn must_keep(store: &impl Store, limits: &impl KnownLimits) {
    limits.each_limit(&mut |limit| {
        if let Err(reason) = store.check(limit) {
            panic!("the store cannot keep the limit `{limit}`: {reason}");
        }
    });
}
