//! How a call is decided.

use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sluicegate_core::adapter::{Charge, Refusal, Treatment, fields};
use sluicegate_core::limit::{Decision, LimitStatus};
use sluicegate_core::rule::Rule;
use utoipa::ToSchema;

use super::request::TakeRequest;
use super::tickets::Tickets;
use crate::admission::{Admission, Paid, admitted};
use crate::api::no_store;
use crate::fields::rounded_up;
use crate::request::DescribedRequest;
use crate::rules::{Price, PricedRules};
use crate::service::Service;
use crate::status::RequestOutcome;

/// What the calls share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(super) service: Service,
    pub(super) tickets: Tickets,
}

impl Context {
    /// Without open tickets.
    pub(crate) fn new(service: &Service) -> Self {
        Self { service: service.clone(), tickets: Tickets::new(service.clock()) }
    }

    pub(super) async fn take(&self, asked: TakeRequest) -> Outcome {
        let latency = self.service.dashboard().latency();
        let begun = latency.begin();
        let outcome = self.decide(asked).await;
        latency.end(begun, RequestOutcome::of(outcome.decided.status));
        outcome
    }

    async fn decide(&self, asked: TakeRequest) -> Outcome {
        let reserve = asked.reserve;
        let admission = match self.admission(asked) {
            Ok(admission) => admission,
            Err(outcome) => return *outcome,
        };
        match admitted(admission).await {
            Ok(paid) => self.admitted(paid, reserve),
            Err(refusal) => match refusal.decision() {
                Some(decision) => Outcome::new(decision, decision.is_admitted()),
                None => Outcome::undecided(&refusal),
            },
        }
    }

    /// What core's admission says about a request, or why it is not asked.
    fn admission(&self, asked: TakeRequest) -> Result<Admission, Box<Outcome>> {
        let reserve = asked.reserve;
        let (rule, described) = self.described(asked)?;
        if reserve && !self.tickets.has_room() {
            return Err(Outcome::failed(503, FULL).into());
        }
        let admission = self.service.admit(&rule, &described.view());
        match admission {
            // It is not the store's fault.
            Admission::Refuse(Refusal::Incomplete(missing) | Refusal::Misconfigured(missing)) => {
                Err(Outcome::failed(400, missing.to_string()).into())
            }
            admission => Ok(admission),
        }
    }

    fn admitted(&self, paid: Paid, reserve: bool) -> Outcome {
        // A rule may serve what exceeds its limit.
        let mut outcome = Outcome::new(&paid.decision(), true);
        outcome.decided.degraded = paid.is_degraded();
        // Otherwise it gives back what it holds, and keeps the rest.
        if reserve {
            outcome.decided.ticket = self.tickets.keep(paid);
            if outcome.decided.ticket.is_none() {
                return Outcome::failed(503, FULL);
            }
        }
        outcome
    }

    pub(super) async fn peek(&self, asked: TakeRequest) -> Outcome {
        let owed = match self.owed(asked) {
            Ok(owed) => owed,
            Err(outcome) => return *outcome,
        };
        match self.service.peek(&owed, self.service.deadline()).decided().await {
            Ok(decision) => {
                let decision = decision.unwrap_or_else(free);
                let treatment = (!decision.is_admitted())
                    .then(|| self.service.by_rules().gate.treat(&decision));
                let is_served =
                    !matches!(treatment, Some(Treatment::Reject | Treatment::Redirect(_)));
                let mut outcome = Outcome::new(&decision, is_served);
                outcome.decided.degraded = treatment == Some(Treatment::Degrade);
                outcome
            }
            Err(error) => Outcome::failed(503, error.to_string()),
        }
    }

    pub(super) async fn reset(&self, asked: TakeRequest) -> Result<(), Box<Outcome>> {
        let owed = self.owed(asked)?;
        let reset = self.service.reset(&owed).await;
        reset.map_err(|error| Outcome::failed(503, error.to_string()).into())
    }

    /// What a request owes, or why that is not known.
    fn owed(&self, asked: TakeRequest) -> Result<Charge, Box<Outcome>> {
        let (rule, described) = self.described(asked)?;
        let mut charge = Charge::new();
        match rule.charge(&described.view(), &mut charge) {
            Ok(()) => Ok(charge),
            Err(missing) => Err(Outcome::failed(400, missing.to_string()).into()),
        }
    }

    /// The rules that decide about a request, and what they see of it.
    fn described(
        &self,
        asked: TakeRequest,
    ) -> Result<(PricedRules<'_>, DescribedRequest), Box<Outcome>> {
        let rules = self.service.rules();
        let rules = rules.ok_or_else(|| Outcome::failed(404, "the server has no file of rules"))?;
        let price = asked.cost.map_or(Price::Times(1), Price::Exactly);
        let described = asked.described().map_err(|wrong| Outcome::failed(400, wrong))?;
        Ok((PricedRules { rules, price }, described))
    }
}

const FULL: &str = "there are too many open tickets";

/// The decision about a request that is charged nothing.
fn free() -> Decision {
    sluicegate_core::adapter::Outcome::free().decision(&Charge::new())
}

/// A decision, and the header fields that belong to it.
pub(super) struct Outcome {
    pub(super) decided: DecisionBody,
    fields: Vec<(&'static str, String)>,
}

impl Outcome {
    /// `is_served`: whether the request goes ahead, whatever its limits say.
    fn new(decision: &Decision, is_served: bool) -> Self {
        let decided = DecisionBody::new(decision, is_served);
        let mut all = vec![
            (fields::RATE_LIMIT_POLICY, fields::rate_limit_policy(decision)),
            (fields::RATE_LIMIT, fields::rate_limit(decision)),
        ];
        all.extend(decided.retry_after.map(|after| (fields::RETRY_AFTER, after.to_string())));
        Self { decided, fields: all }
    }

    /// A store that fails is not a limit that refuses.
    fn undecided(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Unavailable(error) => Self::failed(503, error.to_string()),
            _ => Self::failed(503, "the request is not decided"),
        }
    }

    pub(super) fn failed(status: u16, error: impl Into<String>) -> Self {
        Self { decided: DecisionBody::failed(status, error), fields: Vec::new() }
    }

    pub(super) fn respond(self) -> Response {
        let status = StatusCode::from_u16(self.decided.status).unwrap_or(StatusCode::OK);
        let mut headers = no_store();
        for (name, value) in self.fields {
            if let Ok(value) = HeaderValue::try_from(value)
                && !value.is_empty()
            {
                headers.insert(name, value);
            }
        }
        (status, headers, Json(self.decided)).into_response()
    }
}

/// The answer to a request that makes no sense.
pub(in crate::api) fn bad(what: String) -> Response {
    Outcome::failed(400, what).respond()
}

// What clients get.

/// The decision about a request.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Decided)]
pub(super) struct DecisionBody {
    /// The status that this answer has by itself: 200, 429, 422 where the request can never be admitted, 400 where
    /// it lacks something, or 503 where the store could not decide.
    pub(super) status: u16,
    /// Whether the request may go ahead, after `wait_ms`.
    admitted: bool,
    /// Whether it exceeds a limit and goes ahead all the same, so that the application should serve less.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    degraded: bool,
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

impl DecisionBody {
    fn new(decision: &Decision, is_served: bool) -> Self {
        let status = match is_served {
            true => 200,
            false if decision.never_fits() => 422,
            false => 429,
        };
        let wait_ms = u64::try_from(decision.wait().as_millis()).unwrap_or(u64::MAX);
        let may_return = !is_served && !decision.never_fits();
        Self {
            status,
            admitted: is_served,
            degraded: false,
            wait_ms,
            retry_after: may_return.then(|| fields::retry_after(decision)),
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
        Self {
            policy: status.limit.name().to_string(),
            capacity: status.limit.capacity(),
            remaining: status.remaining,
            reset: status.window.map(rounded_up),
            refused: status.refused,
            shadowed: status.shadowed,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
