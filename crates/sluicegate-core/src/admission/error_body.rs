//! The bodies of refusals, as clients of language models read them.

use crate::admission::refusal::Refusal;
use crate::http::dialect::Dialect;
use crate::http::dialect::field::Api;
use crate::http::dialect::unit::Unit;
use crate::http::fields;
use crate::limit::LimitStatus;

impl Dialect {
    /// The body of a refusal, in JSON:
    ///
    /// - OpenAI: `{"error":{"message":"…","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, where the type is
    ///   the unit of the limit that refuses.
    /// - Anthropic: `{"type":"error","error":{"type":"rate_limit_error","message":"…"}}`.
    pub fn error_body(&self, refusal: &Refusal) -> String {
        let message = self.message(refusal);
        let (kind, code) = match self.api() {
            Api::OpenAi => self.openai_kind(refusal),
            Api::Anthropic => (anthropic_kind(refusal), None),
        };
        self.api().error(kind, code, &message)
    }

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
            Refusal::Misconfigured(_) | Refusal::Unavailable(_) => ("server_error", None),
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
            Refusal::Unavailable(_) => "The request could not be accounted for. Try again.".into(),
        }
    }
}

/// The limit that refuses for the longest time.
fn refusing(refusal: &Refusal) -> Option<&LimitStatus> {
    let refused = refusal.decision()?.told().filter(|status| status.refused);
    refused.max_by_key(|status| status.retry)
}

/// After Anthropic's page "Errors".
fn anthropic_kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::TooMany(_) | Refusal::Elsewhere(..) => "rate_limit_error",
        Refusal::NeverFits(_, 413) => "request_too_large",
        Refusal::NeverFits(..) | Refusal::Incomplete(_) => "invalid_request_error",
        Refusal::Misconfigured(_) => "api_error",
        Refusal::Unavailable(_) => "overloaded_error",
    }
}
