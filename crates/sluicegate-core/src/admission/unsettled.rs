//! A served request that is settled when its response's body has ended.

use std::fmt;

use crate::admission::paid::{AsEnforcer, Paid};
use crate::cost::RunningCost;
use crate::cost::account::Reply;
use crate::cost::llm::usage::TokenUsage;
use crate::store::ticket::rest::Rest;

/// A served request whose response's body has not ended. It is settled when this is dropped.
///
/// `H` is the framework's type for header fields.
pub struct Unsettled<E: AsEnforcer, H> {
    paid: Paid<E>,
    /// What rules are asked about, where they are.
    reply: Option<EndedReply<H>>,
}

/// How to find the first line of a field.
pub type FindLine<H> = for<'h> fn(&'h H, &str) -> Option<&'h [u8]>;

/// What rules can see of a response whose body has ended.
struct EndedReply<H> {
    status: u16,
    headers: H,
    trailers: Option<H>,
    find: FindLine<H>,
    cost: Option<u64>,
    running: Option<RunningCost>,
    usage: Option<TokenUsage>,
}

impl<E: AsEnforcer, H> Unsettled<E, H> {
    /// Keeps what `paid` needs of the response until the body has ended.
    pub fn new(
        paid: Paid<E>,
        reply: &impl Reply,
        running: impl FnOnce() -> Option<RunningCost>,
        headers: impl FnOnce() -> H,
        find: FindLine<H>,
    ) -> Self {
        let reply = (paid.rest() == Rest::Account).then(|| EndedReply {
            status: reply.status(),
            headers: headers(),
            trailers: None,
            find,
            cost: reply.cost(),
            running: running(),
            usage: reply.usage(),
        });
        Self { paid, reply }
    }

    /// A part of the body has passed. If the usage of its tokens is final, they are settled now: the end of the body may
    /// come late, or never.
    pub fn passed(&mut self) {
        if let Some(reply) = &self.reply {
            if reply.usage.as_ref().is_some_and(TokenUsage::is_final) {
                self.paid.end_usage(reply);
            }
        }
    }

    /// The body ends with these trailers.
    pub fn saw_trailers(&mut self, trailers: impl FnOnce() -> H) {
        if let Some(reply) = &mut self.reply {
            reply.trailers = Some(trailers());
        }
    }
}

impl<E: AsEnforcer, H> Drop for Unsettled<E, H> {
    fn drop(&mut self) {
        self.paid.end(self.reply.as_ref().map(|reply| reply as &dyn Reply));
    }
}

impl<H> Reply for EndedReply<H> {
    fn status(&self) -> u16 {
        self.status
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let in_trailers = || (self.find)(self.trailers.as_ref()?, name);
        (self.find)(&self.headers, name).or_else(in_trailers)
    }

    fn cost(&self) -> Option<u64> {
        self.running.as_ref().map(RunningCost::total).or(self.cost)
    }

    fn usage(&self) -> Option<TokenUsage> {
        self.usage.clone()
    }

    /// What a limit refused was settled with the head.
    fn is_refusal(&self) -> bool {
        false
    }
}

impl<E: AsEnforcer, H> fmt::Debug for Unsettled<E, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unsettled")
    }
}
