//! The gRPC status of each refusal.

use std::time::Duration;

use sluicegate::Decision;
use sluicegate::adapter::{Refusal, fields};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, QuotaViolation, StatusExt};

/// The status that tells a gRPC client why its call was refused, and when to come back.
pub(crate) fn status(refusal: &Refusal) -> Status {
    let wait = match refusal {
        // If a request can never be admitted, waiting does not help, wherever others are sent.
        Refusal::Elsewhere(decision, _) if decision.never_fits() => None,
        // A client of gRPC does not follow the redirect.
        Refusal::Elsewhere(decision, _) => Some(fields::retry_after(decision)),
        refusal => refusal.retry_after(),
    };
    let wait = wait.map(Duration::from_secs);
    match refusal {
        Refusal::Incomplete(missing) => Status::invalid_argument(missing.to_string()),
        Refusal::Misconfigured(_) => {
            Status::internal("the server's rate limiting is not set up completely; see its log")
        }
        Refusal::Unavailable(_) => {
            let text = "the request could not be accounted for; try again";
            let details = ErrorDetails::with_retry_info(wait);
            Status::with_error_details(Code::Unavailable, text, details)
        }
        refusal => match refusal.decision() {
            Some(decision) => exhausted(decision, wait),
            None => Status::resource_exhausted("too many requests"),
        },
    }
}

fn exhausted(decision: &Decision, wait: Option<Duration>) -> Status {
    let refusing = decision.statuses().filter(|status| status.refused);
    let violations = refusing.map(|status| QuotaViolation {
        subject: status.limit.name().to_string(),
        description: status.limit.to_string(),
        ..QuotaViolation::default()
    });
    let mut details = ErrorDetails::with_quota_failure(violations.collect::<Vec<_>>());
    let text = match wait {
        Some(wait) => {
            details.set_retry_info(Some(wait));
            format!("too many requests; try again in {} s", wait.as_secs())
        }
        None => "the request costs more than a limit ever admits".to_owned(),
    };
    Status::with_error_details(Code::ResourceExhausted, text, details)
}
