use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use sluicegate_core::Memory;
use sluicegate_core::adapter::{Enforcer, Known};
use sluicegate_core::rule::KnownLimits;
use sluicegate_core::store::Store;

use crate::limited::{Inside, Limited};
use crate::rate_limit::RateLimitFor;

/// The content of every framework's layer: the rule `R` decides what requests are charged, the store `S` keeps the
/// counts, and `P` makes the answers to refused requests.
///
/// An adapter for a framework makes a struct `RateLimitLayer` around it and lets [`layer!`](crate::adapter::layer)
/// write its methods.
#[derive(Clone)]
pub struct LayerSettings<R, S, P> {
    rule: R,
    enforcer: Enforcer<S>,
    respond: P,
}

impl<R: KnownLimits, P> LayerSettings<R, Memory, P> {
    /// Limits requests by `rule`, counted in the memory of this process, and answers those that are refused by
    /// `respond`.
    ///
    /// # Panics
    ///
    /// When a limit is a log that is [too long](crate::Limit::check_length).
    #[track_caller]
    pub fn new(rule: R, respond: P) -> Self {
        let enforcer = Enforcer::in_memory(&rule);
        Self { rule, enforcer, respond }
    }
}

impl<R: KnownLimits, S, P> LayerSettings<R, S, P> {
    /// Counts in `store`.
    ///
    /// # Panics
    ///
    /// When the store cannot keep a limit of the rule.
    #[must_use]
    #[track_caller]
    pub fn store<T: Store>(self, store: T) -> LayerSettings<R, T, P> {
        let enforcer = self.enforcer.with_store(store, &self.rule);
        LayerSettings { rule: self.rule, enforcer, respond: self.respond }
    }
}

impl<R, S, P> LayerSettings<R, S, P> {
    /// Answers by what `respond` makes of the present responder.
    #[must_use]
    pub fn map_respond<Q>(self, respond: impl FnOnce(P) -> Q) -> LayerSettings<R, S, Q> {
        let Self { rule, enforcer, respond: present } = self;
        LayerSettings { rule, enforcer, respond: respond(present) }
    }

    /// The same with a rule and a store of other types, which keep the same limits.
    #[must_use]
    pub fn erased<T, U: Store>(
        self,
        rule: impl FnOnce(R) -> T,
        store: impl FnOnce(S) -> U,
    ) -> LayerSettings<T, U, P> {
        let Self { rule: present, enforcer, respond } = self;
        LayerSettings { rule: rule(present), enforcer: enforcer.map_store(store), respond }
    }

    /// Changes how requests are admitted.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Enforcer<S>)) -> Self {
        change(&mut self.enforcer);
        self
    }

    /// How requests are admitted.
    pub fn enforcer(&self) -> &Enforcer<S> {
        &self.enforcer
    }
}

impl<R: Clone, S: Clone, P: Clone> LayerSettings<R, S, P> {
    /// The service around `inner` for a [`Framework`](crate::adapter::Framework) `W`.
    pub fn service<I, W>(&self, inner: I) -> RateLimitFor<I, R, S, W, P> {
        let Self { rule, enforcer, respond } = self.clone();
        let policies = enforcer.known.iter().map(policy_item).collect();
        let limited = Arc::new(Limited { enforcer, respond, policies });
        RateLimitFor::new(inner, Inside { rule, limited })
    }
}

/// Names of limits are visible ASCII, so there always is one.
fn policy_item(known: &Known) -> HeaderValue {
    match known.lasting_policy() {
        Some(policy) => HeaderValue::from_static(policy),
        None => HeaderValue::from_str(known.policy()).unwrap_or(HeaderValue::from_static("")),
    }
}

impl<R: fmt::Debug, S: fmt::Debug, P> fmt::Debug for LayerSettings<R, S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("rule", &self.rule)
            .field("store", &self.enforcer.store)
            .field("gate", &self.enforcer.gate)
            .finish_non_exhaustive()
    }
}
