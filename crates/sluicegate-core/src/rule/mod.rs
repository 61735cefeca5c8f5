//! Rules: which limits a request is charged to, by which key, and at what cost.
//!
//! [`Limit::by`](crate::Limit::by) makes a rule of one limit. A tuple of rules is a rule: a request is charged to
//! all of them or to none. [`when`] chooses between limits by a condition, [`Tiers`] by customer.
//!
//! ```
//! use sluicegate::{Global, Ip, Limit};
//!
//! // At most 100 a minute for each address, and 5,000 for all addresses together.
//! let rules = (Limit::per_minute(100).by(Ip::peer()), Limit::per_minute(5_000).by(Global));
//! # let _ = rules;
//! ```

pub(crate) mod cases;
pub(crate) mod tiers;

pub use self::cases::{Cases, CasesBuilder, Conditions, when};
pub use self::tiers::{ByTier, TierError, Tiers, TiersBuilder};
use std::fmt;
use std::sync::Arc;

use crate::condition::Condition;
use crate::cost::CostOf;
use crate::cost::account::{Account, Due, Reply};
use crate::key::{Key, KeyBuf, Missing, View};
use crate::limit::{Limit, Limits};
use crate::store::charge::{Charge, Price};

/// Writes down what a request owes.
///
/// Made by [`Limit::by`] and [`Limits::by`]; a tuple of rules charges all of them or none;
/// [`rule_fn`] is for everything else.
///
/// ```
/// use sluicegate::{Global, Ip, Limit};
/// use sluicegate::limit::Limits;
///
/// let rule = (
///     Limits::from([Limit::per_second(10), Limit::per_day(10_000)]).by(Ip::peer()),
///     Limit::concurrent(500).by(Global),
/// );
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a rule for these requests",
    label = "not a rule",
    note = "a limit becomes a rule by a key: `limit.by(Ip::peer())`, `limit.by(Header(\"x-api-key\"))`"
)]
pub trait Rule<V: View>: KnownLimits {
    /// Adds to `charge` what the request of `view` owes.
    ///
    /// # Errors
    ///
    /// Says what is missing, and whose mistake that is.
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing>;
}

/// The limits of a rule that are known before any request is, so that a store can say at the start
/// what it cannot keep. A rule of your own that knows none has nothing to add.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a rule",
    label = "not a rule",
    note = "a limit becomes a rule by a key: `limit.by(Ip::peer())`, `limit.by(Header(\"x-api-key\"))`"
)]
pub trait KnownLimits {
    /// Shows each limit that is known.
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        let _ = each;
    }
}

/// Limits by a key: the usual rule.
#[derive(Debug, Clone)]
pub struct By<K, L = Limits, C = u64> {
    limits: L,
    key: K,
    cost: C,
    account: Option<Account>,
    most: Option<u64>,
}

impl<K, L> By<K, L> {
    /// Charges `limits` to `key`, one for each request: for a [`LimitsFor`] of your own.
    pub fn new(limits: L, key: K) -> Self {
        Self { limits, key, cost: 1, account: None, most: None }
    }
}

impl<K, L, C> By<K, L, C> {
    /// Charges `cost` for each request, instead of one: a number, [`cost_fn`](crate::cost::cost_fn),
    /// [`cost_from`](crate::cost::cost_from) or [`content_length`](crate::cost::content_length).
    pub fn cost<D>(self, cost: D) -> By<K, L, D> {
        By { limits: self.limits, key: self.key, cost, account: self.account, most: self.most }
    }

    /// Counts a request only if `counts` says so of the response's status.
    ///
    /// The request is charged before it is answered and given its charge back afterwards, so that
    /// parallel guesses cannot slip through. A request without a response (its client has gone, the
    /// service failed) stays charged. The response's fields tell of the charge as it was before.
    ///
    /// Logs and windows take back exactly what was charged in them. A bucket takes back what has not
    /// drained, so for few and precious attempts a [`Limit::sliding_log`] is the better choice.
    ///
    /// ```
    /// use sluicegate::{Ip, Limit};
    ///
    /// // Five failed logins in any quarter of an hour.
    /// let rule = Limit::sliding_log(5, std::time::Duration::from_secs(900))
    ///     .by(Ip::peer())
    ///     .count_if(|status| status == 401);
    /// ```
    #[must_use]
    pub fn count_if(self, counts: impl Fn(u16) -> bool + Send + Sync + 'static) -> Self {
        let spent = move |reply: &dyn Reply, charged| {
            if counts(reply.status()) { charged } else { 0 }
        };
        self.settle(Due::Head, spent)
    }

    /// Corrects the charge to what the response says the request cost; `None` keeps the estimate.
    ///
    /// What was charged too much is given back, what was charged too little is charged on top, beyond
    /// the limit if need be: the next requests wait for it.
    ///
    /// It is asked once the head of the response is there. If the handler has left a
    /// [`RunningCost`](crate::cost::RunningCost) in the response's extensions, it is asked when the body has
    /// ended, failed, or been dropped because the client has gone.
    ///
    /// Reserve the most that a request may cost. A client that disconnects before the response pays what was reserved,
    /// so a small reservation lets it use much and pay little.
    ///
    /// One request is settled to at most ten times the larger of its reservation and the limit's capacity, so that a wrong
    /// number in a response does not lock a key for years; [`settle_at_most`](Self::settle_at_most) sets another bound.
    ///
    /// ```
    /// use sluicegate::{Global, Limit};
    /// use sluicegate::adapter::Reply;
    ///
    /// // A budget of tokens: 500 reserved, then what the handler left as `Cost` in the response.
    /// let rule = Limit::per_minute(10_000).by(Global).cost(500).settle_cost(|reply| reply.cost());
    /// ```
    #[must_use]
    pub fn settle_cost(
        self,
        cost: impl Fn(&dyn Reply) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        self.settle(Due::Cost, move |reply, charged| cost(reply).unwrap_or(charged))
    }

    /// Settles when the response's body has ended, failed, or been dropped because the client has gone,
    /// instead of when the head is there: for what is only known then, such as trailers.
    /// [`Reply::header`] finds fields of the trailers too.
    ///
    /// ```
    /// use sluicegate::{Global, Limit};
    /// use sluicegate::cost::reply_header;
    ///
    /// // 500 tokens reserved, then what the trailer `x-tokens-used` says.
    /// let rule = Limit::per_minute(10_000)
    ///     .by(Global)
    ///     .cost(500)
    ///     .settle_cost(reply_header("x-tokens-used"))
    ///     .settle_at_end();
    /// ```
    ///
    /// # Panics
    ///
    /// When nothing is settled: call [`count_if`](Self::count_if) or [`settle_cost`](Self::settle_cost)
    /// first.
    #[must_use]
    #[track_caller]
    pub fn settle_at_end(self) -> Self {
        let account = self.account.expect("`settle_at_end` follows `count_if` or `settle_cost`");
        Self { account: Some(account.at_end()), ..self }
    }

    /// Settles one request to at most `most`, whatever the response says. Without it, the bound is ten times the larger
    /// of the reservation and the limit's capacity.
    ///
    /// ```
    /// use sluicegate::{Global, Limit};
    /// use sluicegate::adapter::Reply;
    ///
    /// // No answer uses more than 4,000 tokens.
    /// let rule = Limit::per_minute(10_000)
    ///     .by(Global)
    ///     .cost(4_000)
    ///     .settle_cost(|reply| reply.cost())
    ///     .settle_at_most(4_000);
    /// ```
    #[must_use]
    pub fn settle_at_most(self, most: u64) -> Self {
        let account = self.account.map(|account| account.at_most(most));
        Self { account, most: Some(most), ..self }
    }

    /// Applies only to requests for which the [`Condition`] `applies` holds; all others owe nothing to
    /// this rule. Said last, after cost and accounting.
    pub fn when<F>(self, applies: F) -> When<Self, F> {
        When { rule: self, applies }
    }

    fn settle(
        self,
        due: Due,
        spent: impl Fn(&dyn Reply, u64) -> u64 + Send + Sync + 'static,
    ) -> Self {
        let account = Account::new(due, spent);
        let account = match self.most {
            Some(most) => account.at_most(most),
            None => account,
        };
        Self { account: Some(account), ..self }
    }
}

impl<V, K, L, C> Rule<V> for By<K, L, C>
where
    V: View,
    K: Key<V>,
    L: LimitsFor<V>,
    C: CostOf<V>,
{
    #[inline]
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        let cost = match self.cost.of(view) {
            Ok(cost) => cost,
            Err(missing) => return self.without_cost(view, missing),
        };
        let price = Price { cost, is_length: self.cost.is_length() };
        if let Some(limit) = self.limits.only_one().filter(|_| charge.is_empty()) {
            let written = self.key.write(view, charge.begin(limit, price, self.account.as_ref()));
            return written.or_else(|missing| {
                charge.forget();
                if missing.is_exempt() { Ok(()) } else { Err(missing) }
            });
        }
        let mut key = KeyBuf::new();
        match self.key.write(view, &mut key) {
            Err(missing) if missing.is_exempt() => return Ok(()),
            written => written?,
        }
        self.limits.each(view, &mut |limit| {
            charge.add_on_account(*limit, key, price, self.account.clone())
        })
    }
}

impl<K, L, C> By<K, L, C> {
    /// A request that owes nothing, because it has no key or by what its cost says, need not say how
    /// much.
    #[cold]
    fn without_cost<V: View>(&self, view: &V, missing: Missing) -> Result<(), Missing>
    where
        K: Key<V>,
    {
        match self.key.write(view, &mut KeyBuf::new()).and(Err(missing)) {
            Err(missing) if missing.is_exempt() => Ok(()),
            error => error,
        }
    }
}

impl<K, L: KnownLimits, C> KnownLimits for By<K, L, C> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.limits.each_limit(each);
    }
}

/// Where a rule's limits come from: a list, [`Cases`], [`Tiers`], or
/// [`choose`].
pub trait LimitsFor<V: View>: KnownLimits {
    /// Hands out the limits for this request.
    ///
    /// # Errors
    ///
    /// What `each` returns.
    fn each(
        &self,
        view: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing>;

    /// The limit, where that is one and the same for every request.
    fn only_one(&self) -> Option<&Limit> {
        None
    }
}

impl<V: View> LimitsFor<V> for Limits {
    #[inline]
    fn only_one(&self) -> Option<&Limit> {
        self.only()
    }

    #[inline]
    fn each(
        &self,
        _: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        match self.only() {
            Some(limit) => each(limit),
            None => self.iter().try_for_each(each),
        }
    }
}

impl KnownLimits for Limits {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.iter().for_each(each);
    }
}

/// Chooses the limits for each request: a customer's own quota, a default for everybody else. For
/// tiers there is [`Tiers`], and for conditions [`when`]: there, a change of
/// limits keeps what was spent.
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

impl<F> KnownLimits for Chosen<F> {}

/// A rule that applies to some requests only; see [`By::when`].
#[derive(Clone, Copy)]
pub struct When<R, F> {
    rule: R,
    applies: F,
}

impl<V: View, R: Rule<V>, F: Condition<V>> Rule<V> for When<R, F> {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        if self.applies.holds(view)? { self.rule.charge(view, charge) } else { Ok(()) }
    }
}

impl<R: KnownLimits, F> KnownLimits for When<R, F> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rule.each_limit(each);
    }
}

/// A rule that writes the charge itself: limits, keys and costs, together, for each request.
pub fn rule_fn<Q, F>(charge: F) -> RuleFn<F>
where
    F: Fn(&Q, &mut Charge) -> Result<(), Missing>,
{
    RuleFn(charge)
}

/// A rule that writes the charge itself; see [`rule_fn`].
#[derive(Clone, Copy)]
pub struct RuleFn<F>(F);

impl<V, F> Rule<V> for RuleFn<F>
where
    V: View,
    F: Fn(&V::Request, &mut Charge) -> Result<(), Missing>,
{
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        (self.0)(view.request(), charge)
    }
}

impl<F> KnownLimits for RuleFn<F> {}

/// One rule for many layers: what is costly to clone, or cannot be.
impl<V: View, R: Rule<V> + ?Sized> Rule<V> for Arc<R> {
    #[inline]
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        (**self).charge(view, charge)
    }
}

impl<R: KnownLimits + ?Sized> KnownLimits for Arc<R> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        (**self).each_limit(each);
    }
}

macro_rules! debug_closures {
    ($($name:literal $type:ty, $($generic:ident),*;)*) => {$(
        impl<$($generic),*> fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }
        }
    )*};
}

debug_closures! {
    "Chosen" Chosen<F>, F;
    "When" When<R, F>, R, F;
    "RuleFn" RuleFn<F>, F;
}

macro_rules! tuples {
    ($($rule:ident),*) => {
        impl<V: View, $($rule: Rule<V>),*> Rule<V> for ($($rule,)*) {
            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
                let ($($rule,)*) = self;
                $($rule.charge(view, charge)?;)*
                Ok(())
            }
        }

        impl<$($rule: KnownLimits),*> KnownLimits for ($($rule,)*) {
            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
                let ($($rule,)*) = self;
                $($rule.each_limit(each);)*
            }
        }
    };
}

tuples!(A);
tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);
tuples!(A, B, C, D, E);
tuples!(A, B, C, D, E, F);

#[cfg(test)]
mod tests;
