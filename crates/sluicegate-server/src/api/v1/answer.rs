//! What clients get.

use serde::Serialize;
use sluicegate_core::limit::{Decision, LimitStatus};
use utoipa::ToSchema;

/// The decision about a request.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct Decided {
    /// The status that this answer has by itself: 200, 429, 422 where the request can never be admitted, 400 where
    /// it lacks something, or 503 where the store could not decide.
    pub(super) status: u16,
    /// Whether the request may go ahead, after `wait_ms`.
    admitted: bool,
    /// How long it should wait before that, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    wait_ms: u64,
    /// In how many seconds a refused request may come again, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after: Option<u64>,
    /// The limits that the request is charged to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitState>,
    /// Settles a reserved request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ticket: Option<String>,
    /// What is wrong, if the request is not decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A limit after a decision.
#[derive(Debug, Serialize, ToSchema)]
struct LimitState {
    /// Its name.
    policy: String,
    /// How much it holds.
    capacity: u64,
    /// How much is left.
    remaining: u64,
    /// In how many seconds more is left, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<u64>,
    /// Whether it refuses the request.
    refused: bool,
    /// Whether it would refuse the request, but is only on trial.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shadowed: bool,
}

/// A result without more to say.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Done {
    /// Whether it was done.
    pub(super) done: bool,
}

impl Decided {
    pub(super) fn new(decision: &Decision) -> Self {
        let is_admitted = decision.is_admitted();
        let status = match is_admitted {
            true => 200,
            false if decision.never_fits() => 422,
            false => 429,
        };
        let wait_ms = u64::try_from(decision.wait().as_millis()).unwrap_or(u64::MAX);
        let may_return = !is_admitted && !decision.never_fits();
        Self {
            status,
            admitted: is_admitted,
            wait_ms,
            retry_after: may_return
                .then(|| sluicegate_core::adapter::fields::retry_after(decision)),
            limits: decision.statuses().map(LimitState::new).collect(),
            ticket: None,
            error: None,
        }
    }

    pub(super) fn failed(status: u16, error: impl Into<String>) -> Self {
        Self { status, error: Some(error.into()), ..Self::default() }
    }
}

impl LimitState {
    fn new(status: &LimitStatus) -> Self {
        let seconds =
            |time: std::time::Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Self {
            policy: status.limit.name().to_string(),
            capacity: status.limit.capacity(),
            remaining: status.remaining,
            reset: status.window.map(seconds),
            refused: status.refused,
            shadowed: status.shadowed,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
