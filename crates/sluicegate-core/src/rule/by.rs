use sluicegate_limit::internal::IntoRule;

use super::contract::{KnownLimits, LimitsFor, Rule};
use super::when::When;
use crate::cost::account::{Account, Due, Reply};
use crate::cost::{CostOf, Settlement};
use crate::key::{Key, KeyBuf, Missing, View};
use crate::limit::{Limit, Limits};
use crate::store::charge::{Charge, CostKind, Price};

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

    /// Counts a request only if `counts` returns true for the response's status.
    ///
    /// The request is charged before it is answered, and given its charge back afterwards, so that parallel guesses
    /// cannot slip through. A request without a response (its client has gone, or the service failed) stays charged.
    /// The response's fields show the charge as it was before.
    ///
    /// Logs and windows take back exactly what was charged in them. A bucket takes back only what has not drained. So
    /// for few and precious attempts, prefer a [`Limit::sliding_log`].
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

    /// Corrects the charge to the cost that the response reports. `None` keeps the estimate.
    ///
    /// The excess is given back, or the difference is charged, beyond the limit if necessary: the next requests wait
    /// for it. While a key is charged beyond its limit, earlier charges may get nothing back.
    ///
    /// It is called once the head of the response is there. If the handler has left a
    /// [`RunningCost`](crate::cost::RunningCost) in the response's extensions, it is called when that is final, at the
    /// latest when the body has ended, failed, or been dropped because the client has gone.
    ///
    /// Reserve the most that a request may cost. A client that disconnects before the response pays what was reserved,
    /// so a small reservation lets it use much and pay little.
    ///
    /// All that a request has used is owed, however long the next requests wait for it. If a wrong number in a response
    /// must not shut a key for years, set a bound with [`settle_at_most`](Self::settle_at_most).
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

    /// Corrects the charge to what a [`Settlement`] makes of the response: for crates that know how a kind of service
    /// reports what it used, such as `sluicegate-llm` for tokens of language models.
    ///
    /// As with [`settle_cost`](Self::settle_cost), all that was used is owed, unless
    /// [`settle_at_most`](Self::settle_at_most) sets a bound.
    #[must_use]
    pub fn settle_by(self, settlement: impl Settlement) -> Self {
        self.settled(Account::by(settlement))
    }

    /// Settles when the response's body has ended, failed, or been dropped because the client has gone, instead of
    /// when the head is there: for values that are known only then, such as trailers. [`Reply::header`] finds fields
    /// of the trailers too.
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
    /// If nothing is settled: call [`count_if`](Self::count_if) or [`settle_cost`](Self::settle_cost) first.
    #[must_use]
    #[track_caller]
    pub fn settle_at_end(self) -> Self {
        let account = self.account.expect("`settle_at_end` follows `count_if` or `settle_cost`");
        Self { account: Some(account.at_end()), ..self }
    }

    /// Settles one request to at most `most`, whatever the response says. That bounds how long the next requests wait
    /// for it: a request that is settled to five times what a limit admits in a minute keeps its key waiting for about
    /// five minutes. What it used beyond `most` is not counted. Without a bound, all of it is owed.
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

    /// Applies only to requests for which the [`Condition`](crate::condition::Condition) `applies` holds. Other
    /// requests are not charged by this rule. Call it last, after cost and settlement.
    pub fn when<F>(self, applies: F) -> When<Self, F> {
        When::new(self, applies)
    }

    fn settle(
        self,
        due: Due,
        spent: impl Fn(&dyn Reply, u64) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.settled(Account::new(due, spent))
    }

    fn settled(self, account: Account) -> Self {
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
    #[inline(always)]
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        let cost = match self.cost.of(view) {
            Ok(cost) => cost,
            Err(missing) => return self.without_cost(view, missing),
        };
        let price = Price { cost, kind: self.cost_kind::<V>() };
        if let Some(limit) = self.limits.only_one().filter(|_| charge.is_empty()) {
            let written = self.key.write(view, charge.begin(limit, price, self.account.as_ref()));
            return written.or_else(|missing| {
                charge.forget();
                self.uncharged(view, missing)
            });
        }
        self.charge_each(view, price, charge)
    }
}

impl<K, L, C> By<K, L, C> {
    #[inline(always)]
    fn cost_kind<V: View>(&self) -> CostKind
    where
        C: CostOf<V>,
    {
        match (self.cost.is_block(), self.cost.is_length()) {
            (true, _) => CostKind::Block,
            (false, true) => CostKind::Length,
            (false, false) => CostKind::Amount,
        }
    }

    /// Charges limits of which there are several, or beside others.
    #[inline(never)]
    fn charge_each<V: View>(
        &self,
        view: &V,
        price: Price,
        charge: &mut Charge,
    ) -> Result<(), Missing>
    where
        K: Key<V>,
        L: LimitsFor<V>,
    {
        let mut key = KeyBuf::new();
        if let Err(missing) = self.key.write(view, &mut key) {
            return self.uncharged(view, missing);
        }
        let charged = self.limits.each(view, &mut |limit| {
            charge.add_on_account(*limit, key, price, self.account.clone())
        });
        charged.or_else(|missing| if self.are_shadows_for(view) { Ok(()) } else { Err(missing) })
    }

    /// A request that is not charged, because of its key or its cost, need not state its cost.
    #[cold]
    fn without_cost<V: View>(&self, view: &V, missing: Missing) -> Result<(), Missing>
    where
        K: Key<V>,
        L: LimitsFor<V>,
    {
        let missing = self.key.write(view, &mut KeyBuf::new()).err().unwrap_or(missing);
        self.uncharged(view, missing)
    }

    /// What becomes of a request for which the key or the cost is missing: an error, unless the key exempts it, or all
    /// limits are shadows, which refuse nothing.
    #[cold]
    fn uncharged<V: View>(&self, view: &V, missing: Missing) -> Result<(), Missing>
    where
        L: LimitsFor<V>,
    {
        let is_exempt = missing.is_exempt() || self.are_shadows_for(view);
        if is_exempt { Ok(()) } else { Err(missing) }
    }

    /// Whether the limits of this request are shadows; all limits that are known, if nobody can tell which are its own.
    #[cold]
    fn are_shadows_for<V: View>(&self, view: &V) -> bool
    where
        L: LimitsFor<V>,
    {
        let (mut limits, mut shadows) = (0, 0);
        let told = self.limits.each(view, &mut |limit| {
            limits += 1;
            shadows += u32::from(limit.is_shadow());
            Ok(())
        });
        match told {
            Ok(()) => limits > 0 && limits == shadows,
            Err(_) => self.limits.are_shadows(),
        }
    }
}

impl<K, L: KnownLimits, C> KnownLimits for By<K, L, C> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.limits.each_limit(each);
    }
}

/// For [`Limit::by`](crate::Limit::by), which `sluicegate-limit` declares without knowing rules.
impl IntoRule<KeyBuf> for Limits {
    type By<K> = By<K>;

    fn by<K>(self, key: K) -> By<K> {
        By::new(self, key)
    }
}
