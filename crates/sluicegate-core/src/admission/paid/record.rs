use std::fmt;

use crate::condition::InFlightGuard;
use crate::cost::RunningCost;
use crate::cost::account::Reply;

/// The head of a response.
pub trait ReplyHead: Reply {
    /// What rules may ask about it when its body has ended.
    fn record(&self) -> ReplyRecord;
}

/// Header fields or trailers that are kept until a body has ended.
pub trait HeaderLines: Send + Sync {
    /// The first line of the field `name`.
    fn first_line(&self, name: &str) -> Option<&[u8]>;
}

/// What is recorded of a response until its body has ended.
pub struct ReplyRecord {
    status: u16,
    cost: Option<u64>,
    running: Option<RunningCost>,
    headers: Box<dyn HeaderLines>,
    trailers: Option<Box<dyn HeaderLines>>,
}

impl ReplyRecord {
    /// Records `reply`, with these header fields.
    pub fn new(reply: &dyn Reply, headers: impl HeaderLines + 'static) -> Self {
        Self {
            status: reply.status(),
            cost: reply.cost(),
            running: reply.running(),
            headers: Box::new(headers),
            trailers: None,
        }
    }

    pub(super) fn add_trailers(&mut self, trailers: Box<dyn HeaderLines>) {
        self.trailers = Some(trailers);
    }

    /// Whether it is known what the response cost, although the body may go on.
    pub(super) fn is_final(&self) -> bool {
        self.running.as_ref().is_some_and(RunningCost::is_final)
    }
}

impl Reply for ReplyRecord {
    fn status(&self) -> u16 {
        self.status
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let in_trailers = || self.trailers.as_ref()?.first_line(name);
        self.headers.first_line(name).or_else(in_trailers)
    }

    fn cost(&self) -> Option<u64> {
        self.running.as_ref().and_then(RunningCost::amount).or(self.cost)
    }

    fn running(&self) -> Option<RunningCost> {
        self.running.clone()
    }

    /// What a limit refused was settled with the head.
    fn is_refusal(&self) -> bool {
        false
    }
}

impl fmt::Debug for ReplyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyRecord").field("status", &self.status).finish_non_exhaustive()
    }
}

/// What the body of a response takes along until it has ended: what is [`Paid`](super::Paid) then, or an
/// [`InFlightGuard`]. It is dropped when the last frame has been taken, when the body fails, and with the body.
pub trait BodyGuard {
    /// A part of the body has passed.
    fn passed(&mut self) {}

    /// The body ends with these trailers.
    fn saw_trailers(&mut self, trailers: &dyn Fn() -> Box<dyn HeaderLines>) {
        let _ = trailers;
    }
}

impl BodyGuard for InFlightGuard {}
