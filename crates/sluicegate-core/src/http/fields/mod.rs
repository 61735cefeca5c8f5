//! Header fields and problem documents: the wire's names are all here.
//!
//! `RateLimit` and `RateLimit-Policy` follow draft-ietf-httpapi-ratelimit-headers-11, the problem
//! documents RFC 9457 and the same draft. `RateLimit-Policy` lists every limit but shadows, of which
//! clients are told nothing; `RateLimit` has an item for each, or, where a request is refused, for those
//! that refuse it, so that its windows never end after `Retry-After`.
//!
//! On a refusal, `RateLimit` lists only the limits that refuse, because the window of another limit may end
//! after `Retry-After`, which the draft forbids.

use std::fmt::{self, Write};
use std::time::Duration;

use crate::http::line::Line;
use crate::limit::{Decision, Limit, LimitStatus};

/// The quotas in force.
pub const RATE_LIMIT_POLICY: &str = "ratelimit-policy";
/// How the client stands with them.
pub const RATE_LIMIT: &str = "ratelimit";
/// When to try again, in seconds (RFC 9110, 10.2.3).
pub const RETRY_AFTER: &str = "retry-after";
/// The quota, in the older form.
pub const X_LIMIT: &str = "x-ratelimit-limit";
/// What remains, in the older form.
pub const X_REMAINING: &str = "x-ratelimit-remaining";
/// Seconds until more remains, in the older form.
pub const X_RESET: &str = "x-ratelimit-reset";
/// Said of a response when a soft limit is exceeded, in the older form.
pub const X_WARNING: &str = "x-ratelimit-warning";
/// The media type of a problem document.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What precedes the names of the draft's problem types.
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
    let announced = announced(decision).filter_map(|status| left(decision, status).1);
    announced.chain(decision.retry_after()).map(seconds).max().unwrap_or(0).max(1)
}

/// The value of `RateLimit-Policy`.
pub fn rate_limit_policy(decision: &Decision) -> String {
    policy_line(decision).as_str().to_owned()
}

/// The value of `RateLimit`.
///
/// A limit that refuses although it has something left, because the request would wait for too long in its
/// queue or could not book a place, is told with nothing left until the request is admitted.
pub fn rate_limit(decision: &Decision) -> String {
    rate_limit_line(decision).as_str().to_owned()
}

pub(crate) fn policy_line(decision: &Decision) -> Line {
    list(decision.told(), |out, status| policy_item(out, &status.limit))
}

pub(crate) fn rate_limit_line(decision: &Decision) -> Line {
    list(announced(decision), |out, status| {
        write!(out, "{}", Quoted(status.limit.name()))?;
        let (remaining, window) = left(decision, status);
        rate_limit_item(out, remaining, window, status.soft)
    })
}

pub(crate) fn policy_of(limit: &Limit) -> String {
    let mut out = String::new();
    policy_item(&mut out, limit).expect("a String takes everything");
    out
}

pub(crate) fn quoted_name(limit: &Limit) -> String {
    Quoted(limit.name()).to_string()
}

/// What stands behind the name.
pub(crate) fn rate_limit_item(
    out: &mut impl Write,
    remaining: u64,
    window: Option<Duration>,
    soft: bool,
) -> fmt::Result {
    write!(out, ";r={}", remaining.min(LARGEST))?;
    if let Some(window) = window {
        write!(out, ";t={}", seconds(window))?;
    }
    if soft {
        out.write_str(";sluicegate-soft")?;
    }
    Ok(())
}

/// The standing that the older fields speak of: the one that leaves the least.
pub fn tightest(decision: &Decision) -> Option<&LimitStatus> {
    announced(decision).min_by_key(|status| status.remaining)
}

/// The value of `X-RateLimit-Reset` for a standing: seconds until more remains.
pub fn x_reset(status: &LimitStatus) -> u64 {
    status.window.map_or(0, seconds)
}

/// What is announced of a standing: how much is left, and until when. Until a refused request is admitted it
/// has nothing left, and no window ends after that.
fn left(decision: &Decision, status: &LimitStatus) -> (u64, Option<Duration>) {
    match (decision.retry_after(), status.window) {
        (Some(retry), Some(window)) if seconds(window) > seconds(retry).max(1) => (0, Some(retry)),
        (_, window) => (status.remaining, window),
    }
}

fn announced(decision: &Decision) -> impl Iterator<Item = &LimitStatus> {
    let admitted = decision.is_admitted();
    decision.told().filter(move |status| admitted || status.refused)
}

fn policy_item(out: &mut impl Write, limit: &Limit) -> fmt::Result {
    write!(out, "{};q={}", Quoted(limit.name()), limit.count().min(LARGEST))?;
    match limit.period() {
        None => out.write_str(";qu=\"concurrent-requests\"")?,
        // The draft counts whole seconds; a window that it cannot say is left out, not misstated.
        Some(period) if period.subsec_nanos() == 0 => write!(out, ";w={}", period.as_secs())?,
        Some(_) => {}
    }
    Ok(())
}

fn list<'a>(
    statuses: impl Iterator<Item = &'a LimitStatus>,
    item: impl Fn(&mut Line, &'a LimitStatus) -> fmt::Result,
) -> Line {
    let mut out = Line::new();
    for status in statuses {
        let comma = if out.is_empty() { "" } else { ", " };
        let written = out.write_str(comma).and_then(|()| item(&mut out, status));
        written.expect("a line takes everything");
    }
    out
}

/// A name in double quotes, `"` and `\` escaped: right in a structured field and in JSON alike, since
/// names are printable ASCII.
struct Quoted<T>(T);

impl<T: fmt::Display> fmt::Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        write!(Escaping(f), "{}", self.0)?;
        f.write_char('"')
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        if text.bytes().all(plain) {
            return self.0.write_str(text);
        }
        for char in text.chars() {
            match char {
                '"' | '\\' => write!(self.0, "\\{char}")?,
                char if char.is_control() => write!(self.0, "\\u{:04x}", u32::from(char))?,
                char => self.0.write_char(char)?,
            }
        }
        Ok(())
    }
}

/// A problem document (RFC 9457), printed as JSON.
#[derive(Debug)]
pub(crate) struct Problem<'a> {
    kind: &'static str,
    title: &'a str,
    status: u16,
    detail: String,
    violated: Vec<&'a Limit>,
}

impl<'a> Problem<'a> {
    pub(crate) fn of(decision: &'a Decision, status: u16) -> Self {
        if decision.never_fits() {
            return Self::never(decision, status);
        }
        let seconds = retry_after(decision);
        let (kind, title) = if decision.is_banned() {
            ("abnormal-usage-detected", "Banned for exceeding a limit")
        } else {
            ("quota-exceeded", "Too many requests")
        };
        let detail = match decision.retry_after() {
            Some(_) => format!("try again in {seconds} s"),
            None => "try again later".to_owned(),
        };
        let violated = announced(decision).map(|status| &status.limit).collect();
        Self { kind, title, status, detail, violated }
    }

    /// Of a request that costs more than a limit ever admits: the draft has no type of problem for it.
    fn never(decision: &'a Decision, status: u16) -> Self {
        let title = match status {
            413 => "Content too large",
            422 => "Unprocessable content",
            _ => "The request can never be admitted",
        };
        let detail =
            "the request costs more than the limit ever admits: do not try again, send less";
        let violated = announced(decision).map(|status| &status.limit).collect();
        Self { kind: "", title, status, detail: detail.to_owned(), violated }
    }

    pub(crate) fn unavailable() -> Self {
        Self {
            kind: "temporary-reduced-capacity",
            title: "Temporarily reduced capacity",
            status: 503,
            detail: "the request could not be accounted for; try again".to_owned(),
            violated: Vec::new(),
        }
    }

    pub(crate) fn plain(status: u16, title: &'a str, detail: &str) -> Self {
        Self { kind: "", title, status, detail: detail.to_owned(), violated: Vec::new() }
    }
}

impl Problem<'_> {
    /// The document, in one piece of memory.
    pub(crate) fn written(&self) -> String {
        let mut out = String::with_capacity(WRITTEN);
        write!(out, "{self}").expect("a String takes everything");
        out
    }
}

/// As long as most problem documents are.
const WRITTEN: usize = 256;

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"type\":")?;
        match self.kind {
            "" => f.write_str("\"about:blank\"")?,
            kind => write!(f, "\"{PROBLEM_TYPES}{kind}\"")?,
        }
        let (title, detail) = (Quoted(self.title), Quoted(&self.detail));
        write!(f, ",\"title\":{title},\"status\":{},\"detail\":{detail}", self.status)?;
        if !self.violated.is_empty() {
            f.write_str(",\"violated-policies\":[")?;
            for (i, limit) in self.violated.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                write!(f, "{comma}{}", Quoted(limit.name()))?;
            }
            f.write_char(']')?;
        }
        // The line's end is for those who read it in a terminal.
        f.write_str("}\n")
    }
}

#[cfg(test)]
mod tests;
