use std::time::Duration;

use http::{HeaderMap, HeaderName, header};

use super::fields::{Fields, Line};
use super::time;

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// `Retry-After` in both forms (RFC 9110, 10.2.3), as a time from now on.
///
/// A date counts from the `Date` of the same response, so that a clock that goes wrong on either side does not matter.
/// A proxy may add a line to the one of the server, or join both to one: the latest instant of those that can be read
/// holds for both of them.
///
/// `retry-after-ms` is the same time in milliseconds, which services with OpenAI's API send beside it. It comes first, as in
/// OpenAI's clients.
pub(super) fn read(
    headers: &HeaderMap,
    fields: &Fields<'_>,
    date: impl Fn() -> Duration,
) -> Option<Duration> {
    let in_millis = |line: &[u8]| Some(Duration::from_millis(time::digits(line.trim_ascii())?));
    latest(headers, &RETRY_AFTER_MS, fields.retry_after_ms, in_millis).or_else(|| {
        let in_seconds = |line: &[u8]| in_seconds(std::str::from_utf8(line).ok()?.trim(), &date);
        latest(headers, &header::RETRY_AFTER, fields.retry_after, in_seconds)
    })
}

/// The longest of the times that the lines of a field say.
fn latest(
    headers: &HeaderMap,
    name: &HeaderName,
    line: Line<'_>,
    read: impl Fn(&[u8]) -> Option<Duration>,
) -> Option<Duration> {
    match line {
        Line::Missing => None,
        Line::Once(value) => read(value.as_bytes()),
        Line::Again => {
            let lines = headers.get_all(name).into_iter();
            lines.filter_map(|value| read(value.as_bytes())).max()
        }
    }
}

fn in_seconds(text: &str, date: impl Fn() -> Duration) -> Option<Duration> {
    let one = |text: &str| match time::digits(text.as_bytes()) {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => Some(time::http_date(text)?.saturating_sub(date())),
    };
    one(text).or_else(|| {
        // Lines that were joined. A date has a comma itself.
        let mut parts = text.split(',').map(str::trim).peekable();
        let mut latest = None;
        while let Some(part) = parts.next() {
            let time = one(part).or_else(|| one(&format!("{part}, {}", parts.peek()?)));
            latest = latest.max(time);
        }
        latest
    })
}
