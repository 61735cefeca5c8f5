//! The gRPC status of each refusal.

use std::time::Duration;

use http::HeaderValue;
use sluicegate::Decision;
use sluicegate::adapter::{Refusal, fields, grpc};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, QuotaViolation, StatusExt};

/// The most bytes of a status's text. What a request lacks is named by the application, and clients accept about 8 KiB
/// of fields.
const LONGEST: usize = 512;

/// The status that tells a gRPC client why its call was refused, and the time to come back where gRPC's own retries look
/// for it. The time is no metadata of the status, because tonic copies metadata entry by entry.
pub(crate) fn status(refusal: &Refusal) -> (Status, Option<HeaderValue>) {
    match refusal {
        Refusal::Incomplete(missing) => {
            (Status::invalid_argument(short(missing.to_string())), None)
        }
        Refusal::Misconfigured(_) => {
            let text = "the server's rate limiting is not set up completely; see its log";
            (Status::internal(text), None)
        }
        Refusal::Unavailable(_) => {
            let wait = refusal.retry_after().map(Duration::from_secs);
            let text = "the request could not be accounted for; try again";
            let details = ErrorDetails::with_retry_info(wait);
            (Status::with_error_details(Code::Unavailable, text, details), Some(pushback(wait)))
        }
        refusal => match refusal.decision() {
            Some(decision) => exhausted(decision),
            None => (Status::resource_exhausted("too many requests"), None),
        },
    }
}

fn exhausted(decision: &Decision) -> (Status, Option<HeaderValue>) {
    // A limit's name has at most 31 bytes and a decision has at most 16 limits, so the details stay short.
    let refusing = decision.statuses().filter(|status| status.refused);
    let violations = refusing.map(|status| QuotaViolation {
        subject: status.limit.name().to_string(),
        description: status.limit.to_string(),
        ..QuotaViolation::default()
    });
    let mut details = ErrorDetails::with_quota_failure(violations.collect::<Vec<_>>());
    let wait = wait(decision);
    let text = match wait {
        Some(wait) => {
            details.set_retry_info(Some(wait));
            format!("too many requests; try again in {}", Readable(wait))
        }
        None => "the request costs more than a limit ever admits".to_owned(),
    };
    let status = Status::with_error_details(Code::ResourceExhausted, text, details);
    (status, Some(pushback(wait)))
}

/// How long to wait, in whole milliseconds; `None` if a request can never be admitted. A client of gRPC does not follow a
/// redirect, so it waits instead.
fn wait(decision: &Decision) -> Option<Duration> {
    if decision.never_fits() {
        return None;
    }
    let wait = match decision.retry_after() {
        Some(exact) => Duration::from_millis(grpc::pushback(exact).into()),
        // Unknown.
        None => Duration::from_secs(fields::retry_after(decision)),
    };
    Some(wait)
}

/// The time to wait, in milliseconds. Without a time, clients are told not to retry.
fn pushback(wait: Option<Duration>) -> HeaderValue {
    match wait {
        Some(wait) => HeaderValue::from(grpc::pushback(wait)),
        None => HeaderValue::from_static(grpc::NEVER),
    }
}

/// The beginning of `text`, if it is too long.
fn short(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
    }
    text
}

/// A time as people read it.
struct Readable(Duration);

impl std::fmt::Display for Readable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_millis() {
            millis @ ..1_000 => write!(f, "{millis} ms"),
            millis => write!(f, "{} s", millis.div_ceil(1_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use sluicegate::key::Missing;

    use super::*;

    #[test]
    fn the_text_of_a_status_is_bounded_and_stays_text() {
        let missing = Missing::client("ä".repeat(10_000));
        let (status, _) = status(&Refusal::Incomplete(missing));
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!((500..=LONGEST).contains(&status.message().len()), "{}", status.message().len());
    }

    #[test]
    fn a_time_is_never_shown_too_short() {
        for (millis, shown) in [(1, "1 ms"), (999, "999 ms"), (1_000, "1 s"), (1_001, "2 s")] {
            assert_eq!(Readable(Duration::from_millis(millis)).to_string(), shown);
        }
    }
}
