//! Header fields and problem documents. All names on the wire are here.
//!
//! `RateLimit` and `RateLimit-Policy` follow draft-ietf-httpapi-ratelimit-headers-11, the problem
//! documents RFC 9457 and the same draft. `RateLimit-Policy` lists every limit but shadows, of which
//! clients are told nothing; `RateLimit` has an item for each, or, where a request is refused, for those
//! that refuse it, so that its windows never end after `Retry-After`.
//!
//! On a refusal, `RateLimit` lists only the limits that refuse, because the window of another limit may end
//! after `Retry-After`, which the draft forbids.

use std::time::Duration;

use crate::http::line::{Line, Text};
use crate::limit::{Decision, Limit, LimitStatus};

/// The quotas in force.
pub const RATE_LIMIT_POLICY: &str = "ratelimit-policy";
/// What the client has left of them.
pub const RATE_LIMIT: &str = "ratelimit";
/// When to try again, in seconds (RFC 9110, 10.2.3).
pub const RETRY_AFTER: &str = "retry-after";
/// The quota, in the older form.
pub const X_LIMIT: &str = "x-ratelimit-limit";
/// What remains, in the older form.
pub const X_REMAINING: &str = "x-ratelimit-remaining";
/// Seconds until more remains, in the older form.
pub const X_RESET: &str = "x-ratelimit-reset";
/// Set on a response if a soft limit is exceeded, in the older form.
pub const X_WARNING: &str = "x-ratelimit-warning";
/// The media type of a problem document.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The prefix of the names of the draft's problem types.
const PROBLEM_TYPES: &str = "https://iana.org/assignments/http-problem-types#";

/// The largest integer of a structured field (RFC 9651, 3.3.1).
const LARGEST: u64 = 999_999_999_999_999;

/// Whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)).min(LARGEST)
}

/// The value of `Retry-After`: whole seconds rounded up, at least 1, never before the end of a window
/// that [`rate_limit`] announces. One that [never fits](Decision::never_fits) has none: see
/// [`Refusal::retry_after`](crate::adapter::Refusal::retry_after).
///
/// A window of a limit that refuses is announced to end by then at the latest: see [`rate_limit`].
pub fn retry_after(decision: &Decision) -> u64 {
    let least = decision.retry_after().map_or(0, seconds).max(1);
    let windows = announced(decision).filter_map(|status| left(decision, status).1);
    windows.fold(least, |least, window| least.max(seconds(window)))
}

/// The value of `RateLimit-Policy`.
pub fn rate_limit_policy(decision: &Decision) -> String {
    policy_line(decision).as_str().to_owned()
}

/// The value of `RateLimit`.
///
/// If a limit refuses although it has something left, because the request would wait for too long in its queue or
/// could not book a place, it is announced with nothing left until the request is admitted.
pub fn rate_limit(decision: &Decision) -> String {
    rate_limit_line(decision).as_str().to_owned()
}

pub(crate) fn policy_line(decision: &Decision) -> Line {
    list(decision.told(), |out, status| policy_item(out, &status.limit))
}

pub(crate) fn rate_limit_line(decision: &Decision) -> Line {
    list(announced(decision), |out, status| {
        out.quoted_name(&status.limit);
        left_item(out, decision, status);
    })
}

/// The one limit that a decision is about, if clients are told of it and it has an item in both fields.
pub(crate) fn only_announced(decision: &Decision) -> Option<&LimitStatus> {
    let mut statuses = decision.statuses();
    let (first, others) = (statuses.next()?, statuses.next());
    (others.is_none() && announced(decision).next().is_some()).then_some(first)
}

/// The parameters of an item of the `RateLimit` field.
pub(crate) fn left_item(out: &mut impl Text, decision: &Decision, status: &LimitStatus) {
    let (remaining, window) = left(decision, status);
    rate_limit_item(out, remaining, window, status.soft);
}

pub(crate) fn policy_of(limit: &Limit) -> String {
    let mut out = String::new();
    policy_item(&mut out, limit);
    out
}

pub(crate) fn quoted_name(limit: &Limit) -> String {
    let mut out = String::new();
    out.quoted_name(limit);
    out
}

/// The parameters of an item, behind the name.
pub(crate) fn rate_limit_item(
    out: &mut impl Text,
    remaining: u64,
    window: Option<Duration>,
    soft: bool,
) {
    out.text(";r=");
    out.number(remaining.min(LARGEST));
    if let Some(window) = window {
        out.text(";t=");
        out.number(seconds(window));
    }
    if soft {
        out.text(";sluicegate-soft");
    }
}

/// The status that the older fields show: the one with the least left.
pub fn tightest(decision: &Decision) -> Option<&LimitStatus> {
    announced(decision).min_by_key(|status| left(decision, status).0)
}

/// The value of `X-RateLimit-Reset` for a status: seconds until more remains.
pub(crate) fn x_reset(decision: &Decision, status: &LimitStatus) -> u64 {
    left(decision, status).1.map_or(0, seconds)
}

/// What is announced of a status: how much is left, and until when. Until a refused request is admitted, it has
/// nothing left, and no window ends after that.
pub(crate) fn left(decision: &Decision, status: &LimitStatus) -> (u64, Option<Duration>) {
    // By itself it would admit the request, to its queue or beside other limits, which cannot have it now.
    if status.refused && status.retry == Some(Duration::ZERO) && !decision.never_fits() {
        return (0, decision.retry_after());
    }
    match (decision.retry_after(), status.window) {
        (Some(retry), Some(window)) if seconds(window) > seconds(retry).max(1) => (0, Some(retry)),
        (_, window) => (status.remaining, window),
    }
}

fn announced(decision: &Decision) -> impl Iterator<Item = &LimitStatus> {
    let admitted = decision.is_admitted();
    decision.told().filter(move |status| admitted || status.refused)
}

fn policy_item(out: &mut impl Text, limit: &Limit) {
    out.quoted_name(limit);
    out.text(";q=");
    out.number(limit.count().min(LARGEST));
    match limit.period() {
        None => out.text(";qu=\"concurrent-requests\""),
        // The draft counts whole seconds. A shorter window is left out instead of being misstated.
        Some(period) if period.subsec_nanos() == 0 => {
            out.text(";w=");
            out.number(period.as_secs());
        }
        Some(_) => {}
    }
}

fn list<'a>(
    statuses: impl Iterator<Item = &'a LimitStatus>,
    item: impl Fn(&mut Line, &LimitStatus),
) -> Line {
    let mut out = Line::new();
    for status in statuses {
        if !out.is_empty() {
            out.text(", ");
        }
        item(&mut out, status);
    }
    out
}

/// A problem document (RFC 9457), in JSON.
#[derive(Debug)]
pub(crate) struct Problem<'a> {
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: Detail<'a>,
    /// The decision whose limits are violated.
    violated: Option<&'a Decision>,
}

#[derive(Debug)]
enum Detail<'a> {
    /// One of ours, in which nothing is to be escaped.
    Fixed(&'static str),
    Text(&'a str),
    /// Try again in this many seconds.
    Again(u64),
}

impl<'a> Problem<'a> {
    pub(crate) fn of(decision: &'a Decision, status: u16) -> Self {
        if decision.never_fits() {
            return Self::never(decision, status);
        }
        let (kind, title) = if decision.is_banned() {
            ("abnormal-usage-detected", "Banned for exceeding a limit")
        } else {
            ("quota-exceeded", "Too many requests")
        };
        let detail = match decision.retry_after() {
            Some(_) => Detail::Again(retry_after(decision)),
            None => Detail::Fixed("try again later"),
        };
        Self { kind, title, status, detail, violated: Some(decision) }
    }

    /// The document for a request that costs more than a limit ever admits. The draft has no type of problem for it.
    fn never(decision: &'a Decision, status: u16) -> Self {
        let title = match status {
            413 => "Content too large",
            422 => "Unprocessable content",
            429 => "Too many requests",
            _ => "The request can never be admitted",
        };
        let detail = match status {
            429 => "the limit never admits this request: do not try again",
            _ => "the request costs more than the limit ever admits: do not try again, send less",
        };
        Self { kind: "", title, status, detail: Detail::Fixed(detail), violated: Some(decision) }
    }

    pub(crate) fn unavailable() -> Self {
        Self {
            kind: "temporary-reduced-capacity",
            title: "Temporarily reduced capacity",
            status: 503,
            detail: Detail::Fixed("the request could not be accounted for; try again"),
            violated: None,
        }
    }

    pub(crate) fn plain(status: u16, title: &'static str, detail: &'a str) -> Self {
        Self { kind: "", title, status, detail: Detail::Text(detail), violated: None }
    }
}

impl Problem<'_> {
    /// The document, allocated once.
    pub(crate) fn written(&self) -> String {
        let mut out = String::with_capacity(WRITTEN);
        self.write(&mut out);
        out
    }

    /// Calls `read` with the document, and returns the result.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let mut out = Line::<WRITTEN>::with_room();
        self.write(&mut out);
        read(out.as_bytes())
    }

    fn write(&self, out: &mut impl Text) {
        out.text("{\"type\":\"");
        match self.kind {
            "" => out.text("about:blank"),
            kind => {
                out.text(PROBLEM_TYPES);
                out.text(kind);
            }
        }
        out.text("\",\"title\":\"");
        out.text(self.title);
        out.text("\",\"status\":");
        out.number(self.status.into());
        out.text(",\"detail\":");
        match self.detail {
            Detail::Fixed(text) => {
                out.text("\"");
                out.text(text);
                out.text("\"");
            }
            Detail::Text(text) => out.quoted(text),
            Detail::Again(seconds) => {
                out.text("\"try again in ");
                out.number(seconds);
                out.text(" s\"");
            }
        }
        let mut between = ",\"violated-policies\":[";
        for status in self.violated.into_iter().flat_map(announced) {
            out.text(between);
            out.quoted_name(&status.limit);
            between = ",";
        }
        if between == "," {
            out.text("]");
        }
        // The line break is for readers in a terminal.
        out.text("}\n");
    }
}

/// As long as most problem documents are.
const WRITTEN: usize = 256;

#[cfg(test)]
mod tests;
