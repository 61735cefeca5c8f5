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

type Spent = dyn Fn(&dyn Reply, u64) -> u64 + Send + Sync;

impl Account {
    pub(crate) fn new(spent: impl Fn(&dyn Reply, u64) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(spent))
    }

    /// What of the `charged` is to stand; all of it where there is no account.
    pub(crate) fn spent(account: Option<&Self>, reply: &dyn Reply, charged: u64) -> u64 {
        account.map_or(charged, |Self(spent)| spent(reply, charged))
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
        Some(Self::new(move |reply, _| {
            let first = Self::spent(first.as_ref(), reply, charged_first);
            first.saturating_add(Self::spent(second.as_ref(), reply, charged_second))
        }))
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account")
    }
}
