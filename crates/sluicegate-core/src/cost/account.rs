//! Charges that depend on the response: the cost of a request, known only when it was answered.

use std::fmt;
use std::sync::Arc;

use crate::cost::llm::usage::TokenUsage;

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

    /// Whether [`cost`](Self::cost) is still growing, because the handler reports it while it streams its
    /// answer: a [`RunningCost`](crate::cost::RunningCost) or a [`TokenUsage`] is in the response's extensions, and the
    /// body has not ended.
    fn is_running(&self) -> bool {
        false
    }

    /// What the request has cost, if somebody who knows it says so. It stands instead of what a rule reads of the response, within
    /// the bound of the rule.
    fn spent(&self) -> Option<u64> {
        None
    }

    /// The tokens that are reported while the answer is streamed: the [`TokenUsage`] in the response's extensions.
    fn usage(&self) -> Option<TokenUsage> {
        None
    }
}

/// The actual cost of a request. The handler leaves it in the response's extensions for
/// [`By::settle_cost`](crate::rule::By::settle_cost).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost(pub u64);

/// The moment at which a charge is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// With the head of the response.
    Head,
    /// When the usage of tokens is final, at the latest with the end of the body. With the head if none is reported.
    Usage,
    /// With the head, or with the end of the body if the cost is running until then.
    Cost,
    /// With the end of the body.
    End,
}

/// How a charge is settled when the response is known.
#[derive(Clone)]
pub(crate) struct Account(Arc<Entry<Spent>>);

struct Entry<F: ?Sized> {
    due: Due,
    /// Whether it is settled by the usage of tokens, where one is reported.
    counts_tokens: bool,
    spent: F,
}

/// From the response and the amount charged to the new amount.
type Spent = dyn Fn(&dyn Reply, u64) -> u64 + Send + Sync;

impl Account {
    pub(crate) fn new(
        due: Due,
        spent: impl Fn(&dyn Reply, u64) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self::counting(due, due == Due::Usage, move |reply, charged| {
            reply.spent().unwrap_or_else(|| spent(reply, charged))
        })
    }

    fn counting(
        due: Due,
        counts_tokens: bool,
        spent: impl Fn(&dyn Reply, u64) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Entry { due, counts_tokens, spent }))
    }

    /// This account with a bound.
    pub(crate) fn at_most(self, bound: u64) -> Self {
        Self::counting(self.0.due, self.counts_tokens(), move |reply, charged| {
            (self.0.spent)(reply, charged).min(bound)
        })
    }

    /// This account, settled when the body has ended.
    pub(crate) fn at_end(self) -> Self {
        Self::counting(Due::End, self.counts_tokens(), move |reply, charged| {
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

    /// Whether it is settled by the usage of tokens, where one is reported.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.0.counts_tokens
    }

    /// Whether it is settled as soon as the usage of tokens is final.
    pub(crate) fn is_by_usage(&self) -> bool {
        self.0.due == Due::Usage
    }

    /// Whether it waits for the end of the body of a response whose cost may be running.
    pub(crate) fn waits(&self, is_running: bool) -> bool {
        match self.0.due {
            Due::Head => false,
            Due::Usage | Due::Cost => is_running,
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
        let counts_tokens = [&first, &second].into_iter().flatten().any(Self::counts_tokens);
        Some(Self::counting(due, counts_tokens, move |reply, _| {
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
