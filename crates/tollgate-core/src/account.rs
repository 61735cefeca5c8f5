//! Accounting by response: what a request cost, known only when it has been answered.

use std::fmt;
use std::sync::Arc;

/// What a rule can see of a response.
pub trait Reply {
    /// The status code: 200.
    fn status(&self) -> u16;

    /// The first line of the header field `name`.
    fn header(&self, name: &str) -> Option<&[u8]>;

    /// What the handler says the request really cost: the [`Cost`] in the response's extensions.
    fn cost(&self) -> Option<u64>;

    /// Whether another limit, further in, refused the request.
    fn is_refusal(&self) -> bool;
}

/// What a request really cost, left by the handler in the response's extensions for
/// [`By::settle_cost`](crate::By::settle_cost).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost(pub u64);

/// How a charge is settled when the response is known.
#[derive(Clone)]
pub(crate) struct Account(Arc<Spent>);

/// From the response, what was charged, and the most that it may become, to what it becomes.
type Spent = dyn Fn(&dyn Reply, u64, u64) -> u64 + Send + Sync;

impl Account {
    pub(crate) fn new(spent: impl Fn(&dyn Reply, u64) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |reply, charged, most| spent(reply, charged).min(most)))
    }

    /// The same account with another bound than the usual one.
    pub(crate) fn at_most(self, bound: u64) -> Self {
        let Self(spent) = self;
        Self(Arc::new(move |reply, charged, _| spent(reply, charged, bound)))
    }

    /// The part of `charged` that stays charged, at most `most`; all of it where there is no account.
    pub(crate) fn spent(account: Option<&Self>, reply: &dyn Reply, charged: u64, most: u64) -> u64 {
        account.map_or(charged, |Self(spent)| spent(reply, charged, most))
    }

    /// Settles two charges to one row, each its own way.
    pub(crate) fn joined(
        first: Option<Self>,
        charged_first: u64,
        second: Option<Self>,
        charged_second: u64,
    ) -> Option<Self> {
        if first.is_none() && second.is_none() {
            return None;
        }
        Some(Self(Arc::new(move |reply, _, most| {
            let first = Self::spent(first.as_ref(), reply, charged_first, most);
            first.saturating_add(Self::spent(second.as_ref(), reply, charged_second, most))
        })))
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account")
    }
}
