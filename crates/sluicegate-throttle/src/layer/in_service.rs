//! A request that is being served: what it costs, how it went, and when it has ended, whatever the framework.

use std::sync::Arc;
use std::task::{Poll, ready};

use sluicegate_core::cost::RunningCost;
use tokio::sync::OwnedSemaphorePermit;

use super::hold_until::HoldUntil;
use super::passing::Passing;
use super::shared::Shared;
use crate::scheduler::{Outcome, Running};

/// A request that is being served. Dropped, it has ended.
///
/// It is boxed because it moves from the decision to the future, to the body, and maybe to a connection.
#[derive(Debug)]
pub(super) struct InService {
    shared: Arc<Shared>,
    /// `None` for a degraded request, which takes up no capacity.
    running: Option<Running>,
    less: Option<OwnedSemaphorePermit>,
    key: u64,
    nanos: u64,
    /// The stopwatch's reading at the start of the present poll; `None` between polls.
    polled_since: Option<u64>,
    /// The cost that the handler reports.
    reported: Option<RunningCost>,
    outcome: Outcome,
    /// The outcome that counts if the body comes to its end.
    at_end: Outcome,
    /// How many bytes of the body are still to come, if that is known. Servers do not ask for more.
    left: Option<u64>,
}

/// What a throttle needs to know about the head of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    /// The cost that the handler reports.
    pub(super) reported: Option<RunningCost>,
    /// Whether a limit or a throttle further in refused the request.
    pub(super) is_refusal: bool,
    /// What the handler asks for.
    pub(super) hold_until: Option<HoldUntil>,
    /// Whether no body is sent.
    pub(super) is_end: bool,
    /// How long the body is, where that is known.
    pub(super) length: Option<u64>,
    /// Whether the response upgrades the connection.
    pub(super) is_upgrade: bool,
}

/// What came of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// So many bytes, and more may follow.
    Data(u64),
    /// The end, or the last frame.
    End,
    Failure,
}

impl InService {
    pub(super) fn new(shared: Arc<Shared>, running: Running, key: u64) -> Box<Self> {
        Self::begun(shared, Some(running), None, key)
    }

    /// A shed request that is served in a degraded way.
    pub(super) fn less(shared: Arc<Shared>, permit: OwnedSemaphorePermit) -> Box<Self> {
        Self::begun(shared, None, Some(permit), 0)
    }

    fn begun(
        shared: Arc<Shared>,
        running: Option<Running>,
        less: Option<OwnedSemaphorePermit>,
        key: u64,
    ) -> Box<Self> {
        Box::new(Self {
            shared,
            running,
            less,
            key,
            nanos: 0,
            polled_since: None,
            reported: None,
            outcome: Outcome::Cancelled,
            at_end: Outcome::Success,
            left: None,
        })
    }

    /// Whether the handler should serve a degraded response.
    pub(super) const fn is_less(&self) -> bool {
        self.less.is_some()
    }

    /// While the returned value exists, further layers of the same throttle let the request pass.
    #[inline]
    pub(super) fn passing(&self) -> Passing {
        Passing::through(&self.shared)
    }

    /// Begins a poll, unless one has begun already.
    #[inline]
    pub(super) fn resume(&mut self) {
        self.polled_since.get_or_insert_with(|| self.shared.stopwatch.read());
    }

    /// Ends a poll.
    #[inline]
    pub(super) fn pause(&mut self) {
        if let Some(before) = self.polled_since.take() {
            self.nanos += self.shared.stopwatch.since(before);
        }
    }

    /// There is no response.
    pub(super) fn failed(&mut self, is_overload: bool) {
        self.outcome = if is_overload { Outcome::Overload } else { Outcome::Error };
    }

    /// The head of the response is there. Returns what the body holds; nothing where the request has ended.
    ///
    /// Until its body has ended, the request counts as cancelled.
    pub(super) fn answered(
        mut self: Box<Self>,
        head: Head,
        hold_until: HoldUntil,
    ) -> Option<Box<Self>> {
        self.reported = head.reported;
        self.left = head.length;
        self.at_end = match head.status {
            _ if head.is_refusal => Outcome::Error,
            429 | 503 | 504 => Outcome::Overload,
            500.. => Outcome::Error,
            _ => Outcome::Success,
        };
        let is_over = match head.hold_until.unwrap_or(hold_until) {
            HoldUntil::Head => true,
            HoldUntil::Body => head.is_end || head.is_upgrade,
            HoldUntil::Close => head.is_end && !head.is_upgrade,
        };
        if head.is_upgrade && !is_over {
            // How long a connection stays open says nothing about the load.
            self.at_end = Outcome::Error;
        }
        if is_over || head.is_upgrade {
            // However a connection is closed after that, its request was served.
            self.outcome = self.at_end;
        }
        (!is_over).then_some(self)
    }

    /// A piece of the body was taken. Returns whether the body has ended.
    pub(super) fn took(&mut self, piece: Piece) -> bool {
        if let (Piece::Data(bytes), Some(left)) = (piece, &mut self.left) {
            *left = left.saturating_sub(bytes);
        }
        match piece {
            Piece::Data(_) if self.left != Some(0) => return false,
            Piece::Data(_) | Piece::End => self.outcome = self.at_end,
            Piece::Failure => self.outcome = Outcome::Error,
        }
        true
    }

    /// Polls the body of the response, measured, and lets go of `held` when the body has ended.
    pub(super) fn poll_body<T>(
        held: &mut Option<Box<Self>>,
        poll: impl FnOnce() -> Poll<(T, Piece)>,
    ) -> Poll<T> {
        let Some(in_service) = held else { return poll().map(|(frame, _)| frame) };
        in_service.resume();
        let polled = poll();
        in_service.pause();
        let (frame, piece) = ready!(polled);
        if in_service.took(piece) {
            *held = None;
        }
        Poll::Ready(frame)
    }
}

impl Drop for InService {
    fn drop(&mut self) {
        self.pause();
        if let Some(running) = self.running.take() {
            let reported = self.reported.as_ref().map(RunningCost::total);
            self.shared.end(running, self.key, self.nanos, reported, self.outcome);
        }
    }
}
