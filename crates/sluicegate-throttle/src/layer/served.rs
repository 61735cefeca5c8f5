//! What is known of a counted request, whatever the framework: what it costs, how it went, and when it has ended.

use std::sync::Arc;

use sluicegate_core::cost::RunningCost;
use tokio::sync::OwnedSemaphorePermit;

use super::hold_until::HoldUntil;
use super::shared::Shared;
use super::turn;
use crate::scheduler::{Outcome, Running};

/// A request that is counted.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) shared: Arc<Shared>,
    /// `None` for a degraded request, which takes up no capacity, and for one that has ended.
    running: Option<Running>,
    pub(super) less: Option<OwnedSemaphorePermit>,
    key: u64,
    /// For how long it was polled, in microseconds.
    polled: u64,
    /// When the present poll began; `None` between polls.
    polled_since: Option<u64>,
    /// When the last poll ended.
    pub(super) paused: u64,
    /// Whether the request carries a [`Started`](super::started::Started).
    pub(super) is_marked: bool,
    /// The cost that the handler reports.
    reported: Option<RunningCost>,
    outcome: Outcome,
    /// The outcome that counts if the body comes to its end.
    at_end: Outcome,
    /// How many bytes of the body are still to come, at most. Servers do not ask for more.
    left: u64,
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
    /// How long the body is, at most: `u64::MAX` where that is not known.
    pub(super) length: u64,
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

impl Served {
    pub(super) fn new(shared: &Arc<Shared>) -> Box<Self> {
        Box::new(Self {
            shared: Arc::clone(shared),
            running: None,
            less: None,
            key: 0,
            polled: 0,
            polled_since: None,
            paused: 0,
            is_marked: false,
            reported: None,
            outcome: Outcome::Cancelled,
            at_end: Outcome::Success,
            left: u64::MAX,
        })
    }

    /// A request is started at `now` and polled from then on, or `None` if it is polled later.
    #[inline]
    pub(super) fn start(&mut self, running: Running, key: u64, now: Option<u64>, is_marked: bool) {
        self.is_marked = is_marked;
        (self.running, self.key) = (Some(running), key);
        (self.polled, self.polled_since) = (0, now);
        (self.outcome, self.at_end) = (Outcome::Cancelled, Outcome::Success);
    }

    #[inline]
    pub(super) fn resume(&mut self) {
        self.polled_since.get_or_insert_with(|| self.shared.now());
    }

    #[inline]
    pub(super) fn pause_at(&mut self, now: u64) {
        if let Some(before) = self.polled_since.take() {
            self.polled += now.saturating_sub(before);
            turn::polled(before, now);
        }
        self.paused = now;
    }

    pub(super) fn failed(&mut self, is_overload: bool) {
        self.outcome = if is_overload { Outcome::Overload } else { Outcome::Error };
    }

    /// Returns whether the request has ended.
    #[inline(always)]
    pub(super) fn answered(&mut self, head: Head, hold_until: HoldUntil) -> bool {
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
        is_over
    }

    /// Returns whether the body has ended.
    pub(super) fn took(&mut self, piece: Piece) -> bool {
        if let Piece::Data(bytes) = piece {
            self.left = self.left.saturating_sub(bytes);
        }
        match piece {
            Piece::Data(_) if self.left > 0 => return false,
            Piece::Data(_) | Piece::End => self.outcome = self.at_end,
            Piece::Failure => self.outcome = Outcome::Error,
        }
        true
    }

    /// Afterwards it can be started again, for another request.
    pub(super) fn end(&mut self, now: u64) {
        self.pause_at(now);
        self.less = None;
        let reported = self.reported.take().map(|reported| reported.total());
        if let Some(running) = self.running.take() {
            self.shared.end(now, running, self.key, self.polled, reported, self.outcome);
        }
    }
}
