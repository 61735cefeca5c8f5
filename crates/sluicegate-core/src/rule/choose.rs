use std::fmt;

use super::by::By;
use super::contract::{KnownLimits, LimitsFor};
use crate::key::{Missing, View};
use crate::limit::{Limit, Limits};

/// Chooses the limits for each request: a customer's own quota, or a default. For tiers use [`Tiers`](crate::Tiers),
/// and for conditions [`when`](crate::when): these keep what was spent when the limits change.
///
/// ```
/// use sluicegate::{First, Header, Ip, Limit};
/// use sluicegate::rule::choose;
///
/// struct Request { paid: bool } // your framework's request
///
/// let rule = choose(|request: &Request| match request.paid {
///     true => Limit::per_minute(6_000),
///     false => Limit::per_minute(60),
/// })
/// // Fit for keys that somebody further out has checked: an invented one has a fresh budget.
/// .by(First((Header("x-api-key"), Ip::peer())));
/// ```
pub fn choose<Q, L, F>(choose: F) -> Chosen<F>
where
    F: Fn(&Q) -> L,
    L: Into<Limits>,
{
    Chosen(choose)
}

/// Limits chosen for each request; see [`choose`].
#[derive(Clone, Copy)]
pub struct Chosen<F>(F);

impl<F> Chosen<F> {
    /// The rule that charges these limits to `key`.
    pub fn by<K>(self, key: K) -> By<K, Self> {
        By::new(self, key)
    }
}

impl<V, F, L> LimitsFor<V> for Chosen<F>
where
    V: View,
    F: Fn(&V::Request) -> L,
    L: Into<Limits>,
{
    fn each(
        &self,
        view: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        (self.0)(view.request()).into().iter().try_for_each(each)
    }
}

impl<F> KnownLimits for Chosen<F> {
    fn each_limit(&self, _: &mut dyn FnMut(&Limit)) {}
}

impl<F> fmt::Debug for Chosen<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chosen")
    }
}
