//! Charges that depend on the response: the cost of a request, known only when it was answered.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::cost::number::{scaled, whole};
use crate::cost::running::RunningCost;
use crate::key::trimmed;

/// What a rule can see of a response.
pub trait Reply {
    /// The status code: 200.
    fn status(&self) -> u16;

    /// The first line of the header field `name`.
    fn header(&self, name: &str) -> Option<&[u8]>;

    /// The cost that the handler reports: the [`Cost`] in the response's extensions.
    fn cost(&self) -> Option<u64>;

    /// Whether another limit, further in, refused the request.
    fn is_refusal(&self) -> bool;

    /// The cost that is reported while the answer is streamed: the [`RunningCost`] in the response's extensions.
    fn running(&self) -> Option<RunningCost>;

    /// Whether the handler reports a cost itself, now or while its answer is streamed. Layers that measure costs leave such
    /// a response alone.
    fn has_cost(&self) -> bool {
        self.cost().is_some() || self.running().is_some()
    }

    /// What the request has cost, if somebody who knows it says so. It stands instead of what a rule reads of the response, within
    /// the bound of the rule.
    fn spent(&self) -> Option<u64> {
        None
    }
}

/// The actual cost of a request. The handler leaves it in the response's extensions for
/// [`By::settle_cost`](crate::rule::By::settle_cost).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost(pub u64);

/// What a request is charged in the end, for [`By::settle_by`](crate::rule::By::settle_by).
pub trait Settlement: Send + Sync + 'static {
    /// The charge of a request that is answered by `reply`, and was charged `charged` at first.
    fn spent(&self, reply: &dyn Reply, charged: u64) -> u64;

    /// Whether that is a guess, because nobody has read what the answer cost. Such answers are
    /// [counted](crate::observe::Counts::unread).
    fn is_guess(reply: &dyn Reply) -> bool;
}

/// The moment at which a charge is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// With the head of the response.
    Head,
    /// With the head, or if a cost is running, when that is final, at the latest with the end of the body.
    Cost,
    /// With the end of the body.
    End,
}

/// How a charge is settled when the response is known.
#[derive(Clone)]
pub(crate) struct Account(Arc<Entry<Spent>>);

struct Entry<F: ?Sized> {
    due: Due,
    is_guess: Option<IsGuess>,
    spent: F,
}

/// See [`Settlement::is_guess`].
type IsGuess = fn(&dyn Reply) -> bool;

/// From the response and the amount charged to the new amount.
type Spent = dyn Fn(&dyn Reply, u64) -> u64 + Send + Sync;

impl Account {
    pub(crate) fn new(
        due: Due,
        spent: impl Fn(&dyn Reply, u64) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self::guessing(due, None, move |reply, charged| {
            reply.spent().unwrap_or_else(|| spent(reply, charged))
        })
    }

    /// Keeps what was charged, whatever the response is.
    pub(crate) fn standing() -> Self {
        static STANDING: LazyLock<Account> =
            LazyLock::new(|| Account::new(Due::Head, |_, charged| charged));
        STANDING.clone()
    }

    /// Settles as `settlement` says, when a running cost is final.
    pub(crate) fn by<S: Settlement>(settlement: S) -> Self {
        Self::guessing(Due::Cost, Some(S::is_guess), move |reply, charged| {
            reply.spent().unwrap_or_else(|| settlement.spent(reply, charged))
        })
    }

    fn guessing(
        due: Due,
        is_guess: Option<IsGuess>,
        spent: impl Fn(&dyn Reply, u64) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Entry { due, is_guess, spent }))
    }

    /// This account with a bound.
    pub(crate) fn at_most(self, bound: u64) -> Self {
        Self::guessing(self.0.due, self.0.is_guess, move |reply, charged| {
            (self.0.spent)(reply, charged).min(bound)
        })
    }

    /// This account, settled when the body has ended.
    pub(crate) fn at_end(self) -> Self {
        Self::guessing(Due::End, self.0.is_guess, move |reply, charged| {
            (self.0.spent)(reply, charged)
        })
    }

    /// What is charged in the end. Without an account, `charged`.
    pub(crate) fn spent(account: Option<&Self>, reply: &dyn Reply, charged: u64) -> u64 {
        account.map_or(charged, |Self(entry)| (entry.spent)(reply, charged))
    }

    /// Whether it may have to wait for the end of the body.
    pub(crate) fn may_wait(&self) -> bool {
        self.0.due != Due::Head
    }

    /// Whether what is charged in the end is a guess.
    pub(crate) fn is_guess(&self, reply: &dyn Reply) -> bool {
        reply.spent().is_none() && self.0.is_guess.is_some_and(|is_guess| is_guess(reply))
    }

    /// Whether it is settled as soon as a running cost is final.
    pub(crate) fn is_by_running(&self) -> bool {
        self.0.due == Due::Cost
    }

    /// Whether it is settled when the body has ended, however early others are.
    pub(crate) fn is_at_end(&self) -> bool {
        self.0.due == Due::End
    }

    /// Whether it waits for the end of the body of a response whose cost may be running.
    pub(crate) fn waits(&self, is_running: bool) -> bool {
        match self.0.due {
            Due::Head => false,
            Due::Cost => is_running,
            Due::End => true,
        }
    }

    /// Settles two charges to one row, each in its own way.
    pub(crate) fn joined(
        first: Option<Self>,
        charged_first: u64,
        second: Option<Self>,
        charged_second: u64,
    ) -> Option<Self> {
        if first.is_none() && second.is_none() {
            return None;
        }
        let due =
            |account: &Option<Self>| account.as_ref().map_or(Due::Head, |Self(entry)| entry.due);
        let due = due(&first).max(due(&second));
        let is_guess =
            [&first, &second].into_iter().flatten().find_map(|Self(entry)| entry.is_guess);
        Some(Self::guessing(due, is_guess, move |reply, _| {
            let first = Self::spent(first.as_ref(), reply, charged_first);
            let second = Self::spent(second.as_ref(), reply, charged_second);
            // What is said of the request is said once for both.
            first.saturating_add(second).min(reply.spent().unwrap_or(u64::MAX))
        }))
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account")
    }
}

/// What a response says in its header `name`, a whole number, for
/// [`By::settle_cost`](crate::rule::By::settle_cost).
///
/// If the header is absent or not a number, the estimate is kept.
///
/// ```
/// use sluicegate::{Claim, Limit};
/// use sluicegate::cost::reply_header;
///
/// // 500 tokens reserved, then what the model's answer says that it used.
/// let rule = Limit::per_minute(10_000)
///     .by(Claim("customer"))
///     .cost(500)
///     .settle_cost(reply_header("x-tokens-used"));
/// ```
pub fn reply_header(
    name: impl AsRef<str> + Send + Sync + 'static,
) -> impl Fn(&dyn Reply) -> Option<u64> + Send + Sync + 'static {
    move |reply| whole(trimmed(reply.header(name.as_ref())?)).ok()
}

/// Like [`reply_header`], for decimal numbers, multiplied by `scale` and rounded up: with 100, a header of `0.25`
/// dollars is 25 cents.
///
/// # Panics
///
/// If `scale` is 0.
#[track_caller]
pub fn reply_header_scaled(
    name: impl AsRef<str> + Send + Sync + 'static,
    scale: u64,
) -> impl Fn(&dyn Reply) -> Option<u64> + Send + Sync + 'static {
    assert!(scale > 0, "scaled by 0, every response would cost nothing");
    move |reply| scaled(trimmed(reply.header(name.as_ref())?), scale).ok()?.try_into().ok()
}
