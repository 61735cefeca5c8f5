//! A request that is being served, whatever the framework: what it costs, how it went, and when it has ended.

use std::sync::Arc;

use sluicegate_core::adapter::{BodyGuard, Piece};
use sluicegate_core::cost::RunningCost;
use tokio::sync::OwnedSemaphorePermit;

use super::nesting::{InsideGuard, StartMark};
use super::shared::Shared;
use super::turn;
use crate::scheduler::{Completion, Running};

/// A request that is being served, counted or not. Dropped, it has ended.
///
/// What is counted is boxed because it moves from the decision to the future, to the body, and maybe to a connection.
#[derive(Debug)]
pub(super) struct InService(Option<Box<CountedRequest>>);

/// What is known of a request that is counted.
#[derive(Debug)]
struct CountedRequest {
    shared: Arc<Shared>,
    /// `None` for a degraded request, which takes up no capacity, and for one that has ended.
    running: Option<Running>,
    has_ended: bool,
    /// Of a degraded request.
    permit: Option<OwnedSemaphorePermit>,
    key: u64,
    /// For how long it was polled, in microseconds.
    polled: u64,
    /// When the present poll began; `None` between polls.
    polled_since: Option<u64>,
    /// When the last poll ended.
    paused: u64,
    /// Whether the request carries a [`StartMark`].
    is_marked: bool,
    /// The cost that the handler reports.
    reported: Option<RunningCost>,
    completion: Completion,
    /// What counts if the body comes to its end.
    at_end: Completion,
    /// How many bytes of the body are still to come, at most. Servers do not ask for more.
    left: u64,
}

/// Until when a request counts as running.
///
/// A handler can put `HoldUntil::Head` into the extensions of its own response. An event stream, for example, then
/// counts only until its head has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HoldUntil {
    /// Until the body of its response has ended. A connection that is upgraded, such as a WebSocket, counts until the
    /// head of its response is there.
    #[default]
    Body,
    /// Until the body of its response has ended, or the upgraded connection has closed. Meant for a capacity of work in
    /// flight, if each WebSocket should take a place while it is open. In tower and axum it needs the feature
    /// `upgrades`.
    Close,
    /// Until the head of its response is there: for services whose responses stream for a long time.
    Head,
}

/// What a throttle needs to know about the head of a response.
#[derive(Debug)]
pub(super) struct Head {
    /// See [`status`].
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

pub(super) const GRPC_STATUS: &str = "grpc-status";

/// The status of a response whose head may hold a [`GRPC_STATUS`]: a call of gRPC that fails at once is answered with
/// 200 all the same. Failures of the server become the status that proxies give them in HTTP, and those of the client 400.
#[inline]
pub(super) fn status<'a>(status: u16, grpc: impl FnOnce() -> Option<&'a [u8]>) -> u16 {
    match (status, if status == 200 { grpc() } else { None }) {
        (status, None | Some(b"0")) => status,
        // UNAVAILABLE.
        (_, Some(b"14")) => 503,
        // DEADLINE_EXCEEDED.
        (_, Some(b"4")) => 504,
        // UNKNOWN, INTERNAL, DATA_LOSS, and what nobody knows. RESOURCE_EXHAUSTED is the quota of one client.
        (_, Some(b"2" | b"13" | b"15")) => 500,
        (_, Some(b"8")) => 429,
        _ => 400,
    }
}

impl InService {
    /// A request that is exempt, or that another layer of its throttle counts.
    pub(super) const UNCOUNTED: Self = Self(None);

    /// A request that was started, and is polled since `polled_since` or will be later.
    #[inline]
    pub(super) fn new(
        shared: &Arc<Shared>,
        running: Running,
        key: u64,
        polled_since: Option<u64>,
        is_marked: bool,
    ) -> Self {
        Self::counted(shared, Some(running), None, key, polled_since, is_marked)
    }

    /// A shed request that is served in a degraded way.
    pub(super) fn degraded(shared: &Arc<Shared>, permit: OwnedSemaphorePermit) -> Self {
        Self::counted(shared, None, Some(permit), 0, None, true)
    }

    fn counted(
        shared: &Arc<Shared>,
        running: Option<Running>,
        permit: Option<OwnedSemaphorePermit>,
        key: u64,
        polled_since: Option<u64>,
        is_marked: bool,
    ) -> Self {
        Self(Some(Box::new(CountedRequest {
            shared: Arc::clone(shared),
            running,
            has_ended: false,
            permit,
            key,
            polled: 0,
            polled_since,
            paused: 0,
            is_marked,
            reported: None,
            completion: Completion::Cancelled,
            at_end: Completion::Success,
            left: u64::MAX,
        })))
    }

    /// Leaves an uncounted one.
    pub(super) const fn take(&mut self) -> Self {
        Self(self.0.take())
    }

    /// As it was started. `None` if it takes up no capacity.
    pub(super) fn running(&self) -> Option<&Running> {
        self.0.as_ref()?.running.as_ref()
    }

    #[cfg(feature = "tower")]
    pub(super) const fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the handler should serve a degraded response.
    pub(super) fn is_degraded(&self) -> bool {
        self.0.as_ref().is_some_and(|counted| counted.permit.is_some())
    }

    /// While the returned value exists, further layers of the same throttle let the request pass.
    #[inline]
    pub(super) fn passing(&self) -> Option<InsideGuard> {
        self.0.as_ref().map(|counted| InsideGuard::through(&counted.shared))
    }

    /// What the extensions of the request tell further layers of the same throttle, where that may be needed.
    #[inline]
    pub(super) fn started(&self, before: impl FnOnce() -> Option<StartMark>) -> Option<StartMark> {
        let throttle = &self.0.as_ref().filter(|counted| counted.is_marked)?.shared;
        Some(before().unwrap_or_default().and_by(throttle))
    }

    /// Begins a poll, unless one has begun already.
    #[inline]
    pub(super) fn resume(&mut self) {
        if let Some(counted) = &mut self.0 {
            counted.begin_poll();
        }
    }

    /// Ends a poll.
    #[inline]
    pub(super) fn pause(&mut self) {
        if let Some(counted) = &mut self.0 {
            counted.end_poll();
        }
    }

    /// There is no response.
    pub(super) fn failed(&mut self, is_overload: bool) {
        if let Some(counted) = &mut self.0 {
            counted.completion = if is_overload { Completion::Overload } else { Completion::Error };
        }
    }

    /// The head of the response is there, since the last poll. Returns what the body holds.
    ///
    /// Until its body has ended, the request counts as cancelled.
    #[inline(always)]
    pub(super) fn answered(mut self, head: impl FnOnce() -> Head, hold_until: HoldUntil) -> Self {
        if let Some(counted) = &mut self.0 {
            if counted.answered(head(), hold_until) {
                counted.end(counted.paused);
                return Self::UNCOUNTED;
            }
        }
        self
    }

    /// What the body of the response takes along. The time in which the body is polled belongs to the cost of the request,
    /// which ends with the body.
    pub(super) fn into_guard(self) -> Option<Box<dyn BodyGuard + Send + Sync>> {
        self.0.map(|counted| counted as Box<dyn BodyGuard + Send + Sync>)
    }
}

impl BodyGuard for CountedRequest {
    fn begin_poll(&mut self) {
        self.polled_since.get_or_insert_with(|| self.shared.now());
    }

    fn end_poll(&mut self) {
        self.pause_at(self.shared.now());
    }

    fn passed(&mut self, piece: Piece<'_>) -> bool {
        if let Piece::Data(bytes) = piece {
            self.left = self.left.saturating_sub(bytes.len() as u64);
        }
        match piece {
            Piece::Data(_) if self.left > 0 => return false,
            Piece::Data(_) | Piece::End => self.completion = self.at_end,
            Piece::Failure => self.completion = Completion::Error,
        }
        self.end(self.paused);
        true
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(self.shared.now());
        }
    }
}

impl CountedRequest {
    #[inline]
    fn pause_at(&mut self, now: u64) {
        if let Some(before) = self.polled_since.take() {
            self.polled += now.saturating_sub(before);
            // Also for requests that are not measured by time: a busy thread is busy whatever the capacity counts.
            turn::polled(before, now);
        }
        self.paused = now;
    }

    /// Returns whether the request has ended.
    #[inline(always)]
    fn answered(&mut self, head: Head, hold_until: HoldUntil) -> bool {
        self.reported = head.reported;
        self.left = head.length;
        if let Some(running) = &mut self.running {
            running.answer(self.paused);
        }
        self.at_end = match head.status {
            // It says how busy a limit further in is, and not how long this server takes.
            _ if head.is_refusal => Completion::Error,
            503 | 504 => Completion::Overload,
            // 429 is the quota of one client.
            429 | 500.. => Completion::Error,
            _ => Completion::Success,
        };
        let is_over = match head.hold_until.unwrap_or(hold_until) {
            HoldUntil::Head => true,
            HoldUntil::Body => head.is_end || head.is_upgrade,
            HoldUntil::Close => head.is_end && !head.is_upgrade,
        };
        if head.is_upgrade && !is_over {
            // How long a connection stays open says nothing about the load.
            self.at_end = Completion::Error;
        }
        if is_over || head.is_upgrade {
            // However a connection is closed after that, its request was served.
            self.completion = self.at_end;
        }
        is_over
    }

    fn end(&mut self, now: u64) {
        self.has_ended = true;
        self.pause_at(now);
        let reported = self.reported.take().map(|reported| reported.total());
        if let Some(running) = self.running.take() {
            self.shared.end(now, running, self.key, self.polled, reported, self.completion);
        }
    }
}
