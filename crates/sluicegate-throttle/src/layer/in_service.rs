//! A request that is being served, whatever the framework.

use std::sync::Arc;
use std::task::{Poll, ready};

use tokio::sync::OwnedSemaphorePermit;

use super::hold_until::HoldUntil;
use super::passing::Passing;
use super::served::{Head, Piece, Served};
use super::shared::Shared;
use super::spare;
use super::started::Started;
use crate::scheduler::Running;

/// A request that is being served, counted or not. Dropped, it has ended.
///
/// What is counted is boxed because it moves from the decision to the future, to the body, and maybe to a connection.
#[derive(Debug)]
pub(super) struct InService(Option<Box<Served>>);

impl InService {
    /// A request that is exempt, or that another layer of its throttle counts.
    pub(super) const UNCOUNTED: Self = Self(None);

    /// A request that is started at `now`, and polled from then on.
    #[inline]
    pub(super) fn at_once(
        shared: &Arc<Shared>,
        running: Running,
        key: u64,
        now: u64,
        is_marked: bool,
    ) -> Self {
        let mut served = spare::take(shared).unwrap_or_else(|| Served::new(shared));
        served.start(running, key, Some(now), is_marked);
        Self(Some(served))
    }

    /// A request that is started after its wait.
    pub(super) fn told(shared: &Arc<Shared>, running: Running, key: u64) -> Self {
        let mut served = spare::take(shared).unwrap_or_else(|| Served::new(shared));
        served.start(running, key, None, true);
        Self(Some(served))
    }

    /// A shed request that is served in a degraded way.
    pub(super) fn less(shared: &Arc<Shared>, permit: OwnedSemaphorePermit) -> Self {
        let mut served = Served::new(shared);
        (served.less, served.is_marked) = (Some(permit), true);
        Self(Some(served))
    }

    /// Leaves an uncounted one.
    pub(super) const fn take(&mut self) -> Self {
        Self(self.0.take())
    }

    #[cfg(feature = "tower")]
    pub(super) const fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the handler should serve a degraded response.
    pub(super) fn is_less(&self) -> bool {
        self.0.as_ref().is_some_and(|served| served.less.is_some())
    }

    /// While the returned value exists, further layers of the same throttle let the request pass.
    #[inline]
    pub(super) fn passing(&self) -> Option<Passing> {
        self.0.as_ref().map(|served| Passing::through(&served.shared))
    }

    /// What the extensions of the request tell further layers of the same throttle, where that may be needed.
    #[inline]
    pub(super) fn started(&self, before: impl FnOnce() -> Option<Started>) -> Option<Started> {
        let throttle = &self.0.as_ref().filter(|served| served.is_marked)?.shared;
        Some(before().unwrap_or_default().and_by(throttle))
    }

    /// Begins a poll, unless one has begun already.
    #[inline]
    pub(super) fn resume(&mut self) {
        if let Some(served) = &mut self.0 {
            served.resume();
        }
    }

    /// Ends a poll.
    #[inline]
    pub(super) fn pause(&mut self) {
        if let Some(served) = &mut self.0 {
            served.pause_at(served.shared.now());
        }
    }

    /// There is no response.
    pub(super) fn failed(&mut self, is_overload: bool) {
        if let Some(served) = &mut self.0 {
            served.failed(is_overload);
        }
    }

    /// The head of the response is there, since the last poll. Returns what the body holds.
    ///
    /// Until its body has ended, the request counts as cancelled.
    #[inline(always)]
    pub(super) fn answered(mut self, head: impl FnOnce() -> Head, hold_until: HoldUntil) -> Self {
        if let Some(served) = &mut self.0 {
            if served.answered(head(), hold_until) {
                self.end();
            }
        }
        self
    }

    /// Polls the body of the response, measured. The request has ended when the body has.
    pub(super) fn poll_body<T>(&mut self, poll: impl FnOnce() -> Poll<(T, Piece)>) -> Poll<T> {
        self.resume();
        let polled = poll();
        self.pause();
        let (frame, piece) = ready!(polled);
        self.took(piece);
        Poll::Ready(frame)
    }

    /// A piece of the body was taken, since the last poll.
    pub(super) fn took(&mut self, piece: Piece) {
        if self.0.as_mut().is_some_and(|served| served.took(piece)) {
            self.end();
        }
    }

    /// It has ended with its last poll.
    fn end(&mut self) {
        if let Some(mut served) = self.0.take() {
            served.end(served.paused);
            spare::keep(served);
        }
    }
}

impl Drop for InService {
    fn drop(&mut self) {
        if let Some(mut served) = self.0.take() {
            served.end(served.shared.now());
            spare::keep(served);
        }
    }
}
