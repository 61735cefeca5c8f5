use std::iter;
use std::time::Duration;

use sluicegate_limit::internal::{InlineVec, Iter};

use crate::cost::account::{Account, Reply};
use crate::key::{KeyBuf, Missing};
use crate::limit::{Keys, Limit, LimitInternals as _, MAX_LIMITS, WhenFull, remote};

/// What one request is charged: which limits, on which keys, at what cost. Charged all or none.
#[derive(Debug, Clone)]
pub struct Charge {
    debits: InlineVec<Debit>,
    patience: Option<Duration>,
    /// Whether it may not wait because too many others wait at this moment.
    is_crowded: bool,
}

/// What a request costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price {
    pub(crate) cost: u64,
    pub(crate) kind: CostKind,
}

/// What a cost that no limit admits says about the request. Where several meet, the greatest by
/// this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CostKind {
    /// It is too large.
    Amount,
    /// Its body is too long.
    Length,
    /// Nothing: the rule refuses every request.
    Block,
}

impl From<u64> for Price {
    fn from(cost: u64) -> Self {
        Self { cost, kind: CostKind::Amount }
    }
}

/// One limit that a request is charged to.
#[derive(Debug, Clone)]
pub struct Debit {
    /// The limit.
    pub limit: Limit,
    /// The key whose budget is charged.
    pub key: KeyBuf,
    /// How much is charged.
    pub cost: u64,
    pub(crate) account: Option<Account>,
    pub(crate) kind: CostKind,
}

impl Charge {
    /// An empty charge.
    #[inline]
    pub const fn new() -> Self {
        Self { debits: InlineVec::new(), patience: None, is_crowded: false }
    }

    /// A charge of `cost` to one limit on one key.
    #[inline]
    pub fn of(limit: Limit, key: KeyBuf, cost: u64) -> Self {
        let kind = CostKind::Amount;
        let debits = InlineVec::of(Some(Debit { limit, key, cost, account: None, kind }));
        Self { debits, patience: None, is_crowded: false }
    }

    /// Adds a charge of `cost` to `limit` on `key`.
    ///
    /// # Errors
    ///
    /// The server's mistake: more than [`MAX_LIMITS`] limits on one request, or two different limits
    /// that share what is spent on the same key, as [`Limit::named`] describes.
    pub fn add(&mut self, limit: Limit, key: KeyBuf, cost: u64) -> Result<(), Missing> {
        self.add_on_account(limit, key, cost, None)
    }

    /// Adds what another charge has, settled as it is there: with another cost, or to another limit.
    ///
    /// # Errors
    ///
    /// Those of [`add`](Self::add).
    pub fn add_debit(&mut self, debit: Debit) -> Result<(), Missing> {
        let Debit { limit, key, cost, account, kind } = debit;
        self.add_on_account(limit, key, Price { cost, kind }, account)
    }

    /// Lets the charge stand, whatever the response is: for requests whose responses nobody sees here.
    #[inline]
    pub fn stand(&mut self) {
        // Not without an account: by default, what is settled by responses counts together where a store is full.
        let accounts = self.debits.iter_mut().filter_map(|debit| debit.account.as_mut());
        accounts.for_each(|account| *account = Account::standing());
    }

    /// Begins an empty charge and hands out the key, to be written in place. The key is large, and moving what has
    /// just been written makes the processor wait.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        limit: &Limit,
        Price { cost, kind }: Price,
        account: Option<&Account>,
    ) -> &mut KeyBuf {
        let account = account.cloned();
        let make = || Debit { limit: *limit, key: KeyBuf::new(), cost, account, kind };
        &mut self.debits.begin(make).key
    }

    /// Undoes [`begin`](Self::begin).
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.debits = InlineVec::new();
    }

    #[inline]
    pub(crate) fn add_on_account(
        &mut self,
        limit: Limit,
        key: KeyBuf,
        price: impl Into<Price>,
        account: Option<Account>,
    ) -> Result<(), Missing> {
        let price = price.into();
        if self.is_empty() {
            let Price { cost, kind } = price;
            self.debits.push(Debit { limit, key, cost, account, kind });
            return Ok(());
        }
        self.add_another(limit, key, price, account)
    }

    fn add_another(
        &mut self,
        limit: Limit,
        key: KeyBuf,
        Price { cost, kind }: Price,
        account: Option<Account>,
    ) -> Result<(), Missing> {
        let same =
            self.debits.iter_mut().find(|debit| debit.limit.id() == limit.id() && debit.key == key);
        if let Some(debit) = same {
            // The same identity with different settings: one of them would silently lose, so it is an error of the
            // server.
            if debit.limit != limit {
                return Err(Missing::server(
                    format!("a name that tells `{}` from `{limit}`", debit.limit),
                    "give each limit of a rule its own `.named(..)`",
                ));
            }
            // Two rules that charge the same limit and key make one debit of the sum, because one row can be taken out
            // once per decision.
            debit.account = Account::joined(debit.account.take(), debit.cost, account, cost);
            debit.cost = debit.cost.saturating_add(cost);
            debit.kind = debit.kind.max(kind);
            return Ok(());
        }
        if self.debits.len() == MAX_LIMITS {
            return Err(Missing::server(
                "room for another limit",
                format!("charge no request to more than {MAX_LIMITS} limits"),
            ));
        }
        self.debits.push(Debit { limit, key, cost, account, kind });
        Ok(())
    }

    /// This charge with each debit replaced by what `map` returns, and without those for which it returns none. The limits
    /// must stay distinct.
    pub(crate) fn with_each<E>(
        &self,
        mut map: impl FnMut(&Debit) -> Result<Option<Debit>, E>,
    ) -> Result<Self, E> {
        let debits = self.debits.iter().filter_map(|debit| map(debit).transpose());
        let debits = debits.collect::<Result<_, _>>()?;
        Ok(Self { debits, ..*self })
    }

    /// Lets the request wait: a place may be booked up to `patience` ahead.
    #[must_use]
    pub fn patient(mut self, patience: Duration) -> Self {
        self.wait_up_to(patience);
        self
    }

    pub(crate) fn wait_up_to(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    /// Too many requests wait at this moment: one that would have to wait in a limit's own queue is refused instead.
    pub(crate) fn crowd_out(&mut self) {
        if self.debits.iter().any(|debit| debit.limit.has_own_queue()) {
            (self.patience, self.is_crowded) = (Some(Duration::ZERO), true);
        }
    }

    /// Whether it could be admitted if there were a place for a request that waits this long.
    pub(crate) fn is_crowded_out(&self, longest: Option<Duration>) -> bool {
        self.is_crowded && !self.never_fits_within(longest)
    }

    /// How far ahead a place may be booked. Without it, a request waits in a leaky bucket's own queue
    /// only, and as long as that takes.
    #[inline]
    pub fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// Whether one of the limits can never admit this, however long the request waits: the store answers
    /// [`Verdict::Never`](crate::limit::Verdict::Never). A [shadow](Limit::shadow) keeps nobody out.
    pub fn never_fits(&self) -> bool {
        self.never_fits_within(self.patience)
    }

    fn never_fits_within(&self, patience: Option<Duration>) -> bool {
        self.debits.iter().any(|debit| debit.never_fits(patience))
    }

    /// Whether all limits that decide are charged on one key. A [shadow](Limit::shadow) does not decide.
    #[inline]
    pub fn keys(&self) -> Keys {
        let mut debits = self.debits.iter().filter(|debit| !debit.limit.is_shadow());
        // By comparison, and not by how many rules there were: two rules may well produce the same key.
        let first = debits.next().map(|debit| &debit.key);
        if debits.all(|debit| Some(&debit.key) == first) { Keys::One } else { Keys::Several }
    }

    /// The debits, in the order of the rule.
    #[inline]
    pub fn debits(&self) -> impl DoubleEndedIterator<Item = &Debit> + Clone {
        self.debits.iter()
    }

    /// The debit, if there is only one.
    #[inline]
    pub(crate) fn only(&self) -> Option<&Debit> {
        self.debits.only()
    }

    /// Whether the client is warned before it is refused, by any of the limits.
    #[inline]
    pub(crate) fn has_soft(&self) -> bool {
        match self.only() {
            Some(debit) => debit.limit.soft_limit().is_some(),
            None => self.debits.iter().any(|debit| debit.limit.soft_limit().is_some()),
        }
    }

    /// Whether limits are charged, and all of them are on trial. They refuse nothing.
    pub(crate) fn is_trial(&self) -> bool {
        !self.is_empty() && self.debits().all(|debit| debit.limit.is_shadow())
    }

    /// The number of limits that are charged.
    #[inline]
    pub fn len(&self) -> usize {
        self.debits.len()
    }

    /// Whether no limit is charged.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.debits.is_empty()
    }
}

/// Each limit with its cost: what [`Outcome::decision`](crate::adapter::Outcome::decision) is about.
impl<'c> IntoIterator for &'c Charge {
    type Item = (&'c Limit, u64);
    type IntoIter = iter::Map<Iter<'c, Debit>, fn(&'c Debit) -> (&'c Limit, u64)>;

    fn into_iter(self) -> Self::IntoIter {
        self.debits.iter().map(|debit| (&debit.limit, debit.cost))
    }
}

impl Default for Charge {
    fn default() -> Self {
        Self::new()
    }
}

impl Debit {
    /// Whether the limit never admits this charge, even after a wait that long.
    pub(crate) fn never_fits(&self, patience: Option<Duration>) -> bool {
        !self.limit.is_shadow() && remote::never_fits(&self.limit, self.cost, patience)
    }

    /// What to do when the store has no room for the key: what the [limit says](crate::Limit::answer_when_full). A
    /// limit that is settled by the response counts keys [together](WhenFull::CountTogether) by default, because it
    /// counts failed attempts.
    pub fn answer_when_full(&self) -> WhenFull {
        match &self.account {
            Some(_) if !self.limit.says_when_full() => WhenFull::CountTogether,
            _ => self.limit.answer_when_full(),
        }
    }

    /// Whether settling it may have to wait for the end of the response's body.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        self.limit.is_held() || self.account.as_ref().is_some_and(Account::may_wait)
    }

    /// Whether settling it waits for the end of the body, of a response whose cost may be running.
    pub(crate) fn waits(&self, is_running: bool) -> bool {
        self.limit.is_held() || self.account_waits(is_running)
    }

    /// Whether the response has to be remembered until then.
    pub(crate) fn account_waits(&self, is_running: bool) -> bool {
        !self.limit.is_held()
            && self.account.as_ref().is_some_and(|account| account.waits(is_running))
    }

    /// Whether it is settled as soon as a running cost is final, which may be before the body has ended.
    pub(crate) fn is_by_running(&self) -> bool {
        !self.limit.is_held() && self.account.as_ref().is_some_and(Account::is_by_running)
    }

    /// Whether it is settled when the body has ended, even where places are given back with the head.
    pub(crate) fn is_at_end(&self) -> bool {
        !self.limit.is_held() && self.account.as_ref().is_some_and(Account::is_at_end)
    }

    /// Whether what it costs in the end is a guess.
    pub(crate) fn is_guess(&self, reply: &dyn Reply) -> bool {
        self.account.as_ref().is_some_and(|account| account.is_guess(reply))
    }

    /// The part of the cost that stays charged when the body has ended, or will never be sent.
    pub(crate) fn spent_at_end(&self, reply: Option<&dyn Reply>) -> u64 {
        match reply {
            Some(reply) => self.spent(reply),
            None if self.limit.is_held() => 0,
            None => self.cost,
        }
    }

    /// What it costs, now that the response is known: as the rule says that it is settled. A place that is
    /// held costs nothing then.
    pub fn spent(&self, reply: &dyn Reply) -> u64 {
        match &self.account {
            _ if self.limit.is_held() || reply.is_refusal() => 0,
            account => match (account, reply.spent()) {
                (None, Some(spent)) => spent,
                (account, _) => Account::spent(account.as_ref(), reply, self.cost),
            },
        }
    }
}

#[cfg(test)]
mod tests;
