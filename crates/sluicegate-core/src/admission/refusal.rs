use crate::admission::gate::Redirect;
use crate::http::fields::{self, Problem};
use crate::http::headers::{Field, Fields, Headers, Value, is_stored_for_others};
use crate::key::Missing;
use crate::limit::Decision;
use crate::store::StoreError;

const DEBUG: &str = "builds without debug assertions say only that there is something in the log";

/// Why a request is answered without being served.
///
/// Decisions are boxed: they are large, and a refusal is moved from hand to hand.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// A limit is exceeded: `429 Too Many Requests`.
    TooMany(Box<Decision>),
    /// The request can never be admitted as it is, because it costs more than a limit ever admits: the status
    /// is `413 Content Too Large` where the cost is the length of the body,
    /// `422 Unprocessable Content` otherwise, or what the layer's `never_fits_status` was given. It is 429 for a rule of a
    /// file that refuses every request. There is no `Retry-After`, since waiting does not help.
    NeverFits(Box<Decision>, u16),
    /// A limit is exceeded, and the client is sent elsewhere, with the redirect's status.
    Elsewhere(Box<Decision>, Redirect),
    /// The client left out, or garbled, what its key is made of: `400 Bad Request`.
    Incomplete(Missing),
    /// The server is not set up to provide something that the rule needs: `500 Internal Server Error`.
    Misconfigured(Missing),
    /// The store failed, and the layer fails closed: `503 Service Unavailable`.
    Unavailable(StoreError),
}

impl Refusal {
    /// The status code.
    pub fn status(&self) -> u16 {
        match self {
            Self::TooMany(_) => 429,
            Self::NeverFits(_, status) => *status,
            Self::Elsewhere(_, redirect) => redirect.status,
            Self::Incomplete(_) => 400,
            Self::Misconfigured(_) => 500,
            Self::Unavailable(_) => 503,
        }
    }

    /// Whether outer limits give their charge back: if another limit refused, or could not decide. A request without
    /// a key is the client's own mistake, and keeps its charge.
    pub fn gives_back(&self) -> bool {
        !matches!(self, Self::Incomplete(_) | Self::Misconfigured(_))
    }

    /// The decision that refused, if there was one.
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::TooMany(decision)
            | Self::NeverFits(decision, _)
            | Self::Elsewhere(decision, _) => Some(decision),
            Self::Incomplete(_) | Self::Misconfigured(_) | Self::Unavailable(_) => None,
        }
    }

    /// The decision that refused, if there was one.
    pub(crate) fn into_decision(self) -> Option<Box<Decision>> {
        match self {
            Self::TooMany(decision)
            | Self::NeverFits(decision, _)
            | Self::Elsewhere(decision, _) => Some(decision),
            Self::Incomplete(_) | Self::Misconfigured(_) | Self::Unavailable(_) => None,
        }
    }

    /// Whole seconds until it is worth trying again, for the `Retry-After` field. None where that is never,
    /// and none on a redirect, where it would tell the client to wait before it follows (RFC 9110, 10.2.3).
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::TooMany(decision) => Some(fields::retry_after(decision)),
            Self::NeverFits(..)
            | Self::Elsewhere(..)
            | Self::Incomplete(_)
            | Self::Misconfigured(_) => None,
            Self::Unavailable(_) => Some(1),
        }
    }

    /// The body: a problem document (RFC 9457), for the media type
    /// [`fields::PROBLEM_JSON`]. What the server's set-up lacks stands in it in builds with debug assertions
    /// only: in others, the operator reads it in the log, or on standard error where no `tracing` subscriber
    /// records it.
    pub fn problem(&self) -> String {
        self.with_problem(|problem| problem.written())
    }

    /// What `read` makes of the bytes of the [`problem`](Self::problem) document, which are not allocated for it.
    pub fn read_problem<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        self.with_problem(|problem| problem.read(read))
    }

    fn with_problem<T>(&self, use_it: impl FnOnce(&Problem<'_>) -> T) -> T {
        let status = self.status();
        match self {
            Self::TooMany(decision)
            | Self::NeverFits(decision, _)
            | Self::Elsewhere(decision, _) => use_it(&Problem::of(decision, status)),
            Self::Incomplete(missing) => {
                use_it(&Problem::plain(status, "Bad request", &missing.to_string()))
            }
            // The operator reads in the log what is missing; the developer reads it here.
            Self::Misconfigured(missing) if cfg!(debug_assertions) => use_it(&Problem::plain(
                status,
                "Internal server error",
                &format!("{missing} ({DEBUG})"),
            )),
            Self::Misconfigured(_) => use_it(&Problem::plain(
                status,
                "Internal server error",
                "the server's rate limiting is not set up completely; see its log",
            )),
            Self::Unavailable(_) => use_it(&Problem::unavailable()),
        }
    }
}

impl Fields {
    /// Writes what a refusal says beside what the operator answers. `write` writes these fields about a decision.
    pub(crate) fn write_refusal<H: Headers>(
        refusal: &Refusal,
        headers: &mut H,
        write: impl FnOnce(&Decision, &mut H),
    ) {
        if let (Some(seconds), false) = (refusal.retry_after(), headers.contains(Field::RetryAfter))
        {
            headers.insert(Field::RetryAfter, Value::Number(seconds));
        }
        let is_private = !headers.contains_any(&[
            Field::CacheControl,
            Field::CdnCacheControl,
            Field::SurrogateControl,
        ]);
        if is_private || !headers.contains(Field::CacheControl) {
            // RFC 6585, 4: a 429 is not stored by a cache.
            headers.insert(Field::CacheControl, Value::Static("no-store"));
        }
        match refusal {
            Refusal::TooMany(decision) | Refusal::NeverFits(decision, _) => {
                if is_private || !is_stored_for_others(headers) {
                    write(decision, headers);
                }
            }
            Refusal::Elsewhere(_, redirect) => {
                headers.insert(Field::Location, Value::Text(redirect.location.as_bytes()));
            }
            Refusal::Incomplete(_) | Refusal::Misconfigured(_) | Refusal::Unavailable(_) => {}
        }
    }
}
