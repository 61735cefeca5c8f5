use std::mem;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;

use super::budget::{Budget, Tokens};
use super::decide::{AttemptResult, Bounds, Repeatable, Time};
use crate::call::{Stage, end, until};
use crate::error::BoxError;
use crate::obey::Signal;
use crate::outgoing::{OutgoingResponse, ReplayRequest, grpc};

/// What all services of a layer share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) budget: Arc<Budget>,
    pub(super) tokens: Option<Arc<Tokens>>,
    pub(super) bounds: Bounds,
    pub(super) repeatable: Repeatable,
    pub(super) retry_on: fn(&AttemptResult<'_>) -> bool,
    pub(super) clock: Clock,
}

/// The attempts of one request.
#[derive(Debug)]
pub(super) struct Attempts {
    shared: Arc<Shared>,
    /// A layer around this one retries, and its budget counts the request.
    is_nested: bool,
    /// Attempts that have ended.
    ended: u32,
    may_repeat: bool,
    /// Until when the answer is of use, in microseconds on the clock.
    deadline: Option<u64>,
    /// Until when the request may wait, by the layers around this one and further in.
    wait_until: Option<u64>,
    /// One of these layers lets no request wait for a server.
    never_waits: bool,
    /// The next attempt is paid for, and has not left the program.
    is_unsent: bool,
}

static PREVIOUS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

impl Attempts {
    pub(super) fn new(
        shared: Arc<Shared>,
        is_nested: bool,
        may_repeat: bool,
        time: Option<Duration>,
    ) -> Self {
        let deadline = time.map(|time| end(&shared.clock, time));
        Self {
            shared,
            is_nested,
            ended: 0,
            may_repeat,
            deadline,
            wait_until: None,
            never_waits: false,
            is_unsent: false,
        }
    }

    /// The first attempt has ended, and was sent. One that this program holds back pays for no retry.
    pub(super) fn deposit(&self) {
        if !self.is_nested {
            self.shared.budget.deposit();
        }
    }

    /// Notes the time in which the waits of the request end.
    pub(super) fn bound(&mut self, left: Option<Duration>) {
        let Some(left) = left else { return };
        if left.is_zero() && self.wait_until.is_none() {
            // That is not for a moment between two attempts, which this program chooses.
            self.never_waits = true;
            return;
        }
        let at = end(&self.shared.clock, left);
        self.wait_until = Some(self.wait_until.map_or(at, |until| until.min(at)));
    }

    /// The time that the waits of the request have left.
    pub(super) fn left(&self) -> Option<Duration> {
        self.wait_until.map(|at| until(&self.shared.clock, at))
    }

    /// The next attempt, of the request in `copy`, and the wait before it. `None` if there is none.
    pub(super) fn next<R: ReplayRequest, T: OutgoingResponse>(
        &mut self,
        copy: &mut Option<R>,
        result: &Result<T, BoxError>,
    ) -> Option<(Sleep<tokio::time::Sleep>, R)> {
        self.ended += 1;
        if !self.may_repeat {
            return None;
        }
        let outcome = match result {
            Ok(response) => {
                AttemptResult::Response { status: response.status(), headers: response.headers() }
            }
            Err(error) => AttemptResult::Error(error),
        };
        let is_passing = (self.shared.retry_on)(&outcome);
        let tokens = self.shared.tokens.as_ref();
        // Noted for each attempt, also the last one, because the tokens count failures and not retries.
        let has_tokens = tokens.is_none_or(|tokens| tokens.note(is_passing));
        if !is_passing || !has_tokens || self.ended >= self.shared.bounds.attempts {
            return None;
        }
        let now = self.shared.clock.now();
        let signal = match outcome {
            AttemptResult::Response { status, headers } => {
                Some(Signal::read(status, headers, Duration::from_micros(now)))
            }
            AttemptResult::Error(_) => None,
        };
        let left = |at: Option<u64>| at.map(|at| Duration::from_micros(at.saturating_sub(now)));
        let time = Time {
            left: left(self.deadline),
            waits: left(self.wait_until),
            never_waits: self.never_waits,
        };
        let random = fastrand::u32(..);
        let wait = self.shared.bounds.wait(self.ended, signal.as_ref(), time, random)?;
        let mut next = copy.take()?;
        // Last, so that nothing is paid for what does not happen.
        if !self.shared.budget.withdraw() {
            return None;
        }
        self.is_unsent = true;
        // No copy for the last attempt: bodies may be large.
        if self.ended + 1 < self.shared.bounds.attempts {
            *copy = next.try_clone();
        }
        self.prepare(&mut next, time.left.map(|left| left.saturating_sub(wait)));
        Some((Sleep::new(&self.shared.clock, wait, tokio::time::sleep), next))
    }

    /// Notes what the layers further in say of an attempt after the first one.
    pub(super) const fn is_at(&mut self, stage: Stage) {
        match stage {
            Stage::Held => self.is_unsent = true,
            Stage::Left => self.is_unsent = false,
            Stage::Silent => {}
        }
    }

    /// Takes back what was paid for an attempt that is not sent.
    pub(super) fn refund(&mut self) {
        if mem::take(&mut self.is_unsent) {
            self.shared.budget.refund();
        }
    }

    /// The next attempt has what is left of the time. A call of gRPC says how many attempts there were (gRFC A6).
    fn prepare(&self, next: &mut impl ReplayRequest, left: Option<Duration>) {
        if let Some(left) = left {
            next.shorten_timeout(left);
        }
        if grpc::is_call(next.headers()) {
            next.headers_mut().insert(&PREVIOUS, self.ended.into());
        }
    }
}

impl Drop for Attempts {
    /// Its caller may leave before the next attempt is sent.
    fn drop(&mut self) {
        self.refund();
    }
}
