//! Errors in the form of an API.

use serde_json::json;
use sluicegate_core::adapter::{Refusal, fields};
use sluicegate_core::limit::LimitStatus;

use super::{Api, Dialect, Unit, told};

/// The body of a refusal.
pub(super) fn body(dialect: &Dialect, refusal: &Refusal) -> String {
    let message = dialect.message(refusal);
    let (kind, code) = match dialect.api {
        Api::OpenAi => dialect.openai_kind(refusal),
        Api::Anthropic => (anthropic_kind(refusal), None),
    };
    dialect.api.error(kind, code, &message)
}

impl Api {
    /// The body of an error. `code` is told to OpenAI's clients only.
    pub(crate) fn error(self, kind: &str, code: Option<&str>, message: &str) -> String {
        let (kind, code, message) = (json!(kind), json!(code), json!(message));
        match self {
            Self::OpenAi => format!(
                "{{\"error\":{{\"message\":{message},\"type\":{kind},\"param\":null,\"code\":{code}}}}}\n"
            ),
            Self::Anthropic => format!(
                "{{\"type\":\"error\",\"error\":{{\"type\":{kind},\"message\":{message}}}}}\n"
            ),
        }
    }
}

impl Dialect {
    fn openai_kind(&self, refusal: &Refusal) -> (&'static str, Option<&'static str>) {
        match refusal {
            Refusal::TooMany(_) | Refusal::NeverFits(..) | Refusal::Elsewhere(..) => {
                let unit = refusing(refusal).and_then(|status| self.unit_of(status));
                let kind = match unit {
                    Some(Unit::Tokens | Unit::InputTokens | Unit::OutputTokens) => "tokens",
                    Some(Unit::Requests) | None => "requests",
                };
                (kind, Some("rate_limit_exceeded"))
            }
            Refusal::Incomplete(_) => ("invalid_request_error", None),
            _ => ("server_error", None),
        }
    }

    fn message(&self, refusal: &Refusal) -> String {
        let of_limit = |status: &LimitStatus| {
            let unit = self.unit_of(status).unwrap_or(Unit::Requests);
            let (name, most) = (status.limit.name(), status.limit.capacity());
            format!("the limit `{name}` of {most} {unit}")
        };
        let limit = refusing(refusal).map_or_else(|| "a limit".to_owned(), of_limit);
        match refusal {
            Refusal::TooMany(decision) => match decision.retry_after() {
                Some(_) => {
                    let seconds = fields::retry_after(decision);
                    format!("Rate limit reached: {limit} is exceeded. Try again in {seconds} s.")
                }
                None => format!("Rate limit reached: {limit} is exceeded. Try again later."),
            },
            Refusal::NeverFits(..) => {
                format!("Request too large: it needs more than {limit} ever admits. Send less.")
            }
            Refusal::Elsewhere(..) => format!("Rate limit reached: {limit} is exceeded."),
            Refusal::Incomplete(missing) => missing.to_string(),
            // What the set-up lacks is for the log.
            Refusal::Misconfigured(_) => "The rate limit is not set up completely.".into(),
            _ => "The request could not be accounted for. Try again.".into(),
        }
    }
}

/// The limit that refuses for the longest time.
fn refusing(refusal: &Refusal) -> Option<&LimitStatus> {
    let refused = told(refusal.decision()?).filter(|status| status.refused);
    refused.max_by_key(|status| status.retry)
}

/// After Anthropic's page "Errors".
fn anthropic_kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::TooMany(_) | Refusal::Elsewhere(..) => "rate_limit_error",
        Refusal::NeverFits(_, 413) => "request_too_large",
        Refusal::NeverFits(..) | Refusal::Incomplete(_) => "invalid_request_error",
        Refusal::Unavailable(_) => "overloaded_error",
        _ => "api_error",
    }
}
