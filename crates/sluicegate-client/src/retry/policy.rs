use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;
use tower::retry::Policy;

use super::budget::Budget;
use super::decide::{Bounds, Outcome};
use super::repeat::Repeatable;
use super::tokens::Tokens;
use crate::error::BoxError;
use crate::obey::Signal;
use crate::outgoing::{OutgoingResponse, ReplayRequest, grpc};

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) budget: Arc<Budget>,
    pub(super) tokens: Option<Arc<Tokens>>,
    pub(super) bounds: Bounds,
    pub(super) repeatable: Repeatable,
    pub(super) retry_on: fn(&Outcome<'_>) -> bool,
    pub(super) clock: Clock,
}

/// The attempts of one request: the policy of tower's retry.
#[derive(Debug, Clone)]
pub(super) struct Attempts {
    shared: Arc<Shared>,
    /// Attempts that have ended.
    ended: u32,
    may_repeat: bool,
    /// In microseconds on the clock.
    deadline: Option<u64>,
}

impl Attempts {
    pub(super) fn new(shared: Arc<Shared>, may_repeat: bool, left: Option<Duration>) -> Self {
        let deadline = left.map(|left| {
            let micros = u64::try_from(left.as_micros()).unwrap_or(u64::MAX);
            shared.clock.now().saturating_add(micros)
        });
        Self { shared, ended: 0, may_repeat, deadline }
    }
}

static PREVIOUS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

impl Attempts {
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

impl<R, Res> Policy<R, Res, BoxError> for Attempts
where
    R: ReplayRequest,
    Res: OutgoingResponse,
{
    type Future = Sleep<tokio::time::Sleep>;

    fn retry(&mut self, next: &mut R, result: &mut Result<Res, BoxError>) -> Option<Self::Future> {
        self.ended += 1;
        let outcome = match result {
            Ok(response) => {
                Outcome::Response { status: response.status(), headers: response.headers() }
            }
            Err(error) => Outcome::Error(error),
        };
        let is_passing = (self.shared.retry_on)(&outcome);
        let tokens = self.shared.tokens.as_ref();
        let has_tokens = tokens.is_none_or(|tokens| tokens.note(is_passing));
        if !is_passing || !has_tokens {
            return None;
        }
        let now = self.shared.clock.now();
        let signal = match outcome {
            Outcome::Response { status, headers } => {
                Some(Signal::read(status, headers, Duration::from_micros(now)))
            }
            Outcome::Error(_) => None,
        };
        let left = self.deadline.map(|at| Duration::from_micros(at.saturating_sub(now)));
        let random = fastrand::u32(..);
        let wait = self.shared.bounds.wait(self.ended, signal.as_ref(), left, random)?;
        // Last, so that nothing is paid for what does not happen.
        if !self.shared.budget.withdraw() {
            return None;
        }
        self.prepare(next, left.map(|left| left.saturating_sub(wait)));
        Some(Sleep::new(&self.shared.clock, wait, tokio::time::sleep))
    }

    fn clone_request(&mut self, request: &R) -> Option<R> {
        let is_last = self.ended + 1 >= self.shared.bounds.attempts;
        // tower tells how the last attempt ended only if there could be another one.
        if !self.may_repeat || (is_last && self.shared.tokens.is_none()) {
            return None;
        }
        request.try_clone()
    }
}
