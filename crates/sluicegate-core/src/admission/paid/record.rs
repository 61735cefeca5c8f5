use std::fmt;
use std::task::{Poll, ready};

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

/// There is no response.
pub(super) struct NoLines;

impl HeaderLines for NoLines {
    fn first_line(&self, _: &str) -> Option<&[u8]> {
        None
    }
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

    /// Of a request that was not answered, only what it has cost is known.
    pub(super) fn of_cost(cost: u64) -> Self {
        let headers = Box::new(NoLines);
        Self { status: 200, cost: Some(cost), running: None, headers, trailers: None }
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

/// What the body of a response takes along until it has ended: what is [`Paid`](super::Paid) then, an [`InFlightGuard`], or
/// what another layer measures. It is dropped when the last frame has been taken, when the body fails, and with the body.
pub trait BodyGuard {
    /// The body is about to be polled.
    fn begin_poll(&mut self) {}

    /// The poll is over, whether or not a piece of the body has come.
    fn end_poll(&mut self) {}

    /// A piece of the body has passed. Returns whether the guard ends with it, as it does with all but data.
    fn passed(&mut self, piece: Piece<'_>) -> bool {
        !matches!(piece, Piece::Data(_))
    }

    /// The body ends with these trailers.
    fn saw_trailers(&mut self, trailers: &dyn Fn() -> Box<dyn HeaderLines>) {
        let _ = trailers;
    }
}

impl BodyGuard for InFlightGuard {}

/// What has come of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Data(&'a [u8]),
    /// The end, after the last frame or with it.
    End,
    /// An error.
    Failure,
}

/// Polls `body` for its next frame, and tells its guard what has come. `pass` hands a frame to the guard, and returns
/// whether it is the last one. The guard is dropped once it or the body has ended.
#[inline]
pub fn poll_guarded<B, G: BodyGuard + ?Sized, F, E>(
    body: &mut B,
    guard: &mut Option<Box<G>>,
    poll: impl FnOnce(&mut B) -> Poll<Option<Result<F, E>>>,
    pass: impl FnOnce(&B, &F, &mut G) -> bool,
) -> Poll<Option<Result<F, E>>> {
    let Some(known) = guard else { return poll(body) };
    known.begin_poll();
    let polled = poll(body);
    known.end_poll();
    let frame = ready!(polled);
    let is_over = match &frame {
        Some(Ok(frame)) => pass(body, frame, known),
        Some(Err(_)) => known.passed(Piece::Failure),
        None => known.passed(Piece::End),
    };
    if is_over {
        *guard = None;
    }
    Poll::Ready(frame)
}
