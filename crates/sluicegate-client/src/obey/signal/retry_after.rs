use std::time::Duration;

use super::fields::Line;
use super::time;

/// `Retry-After` in both forms (RFC 9110, 10.2.3), as a time from now on.
///
/// A date counts from the `Date` of the same response, so that a clock that goes wrong on either side does not matter.
///
/// `retry-after-ms` is the same time in milliseconds, which services with OpenAI's API send beside it. It comes first, as in
/// OpenAI's clients.
pub(super) fn read(
    in_millis: Line<'_>,
    line: Line<'_>,
    date: impl FnOnce() -> Duration,
) -> Option<Duration> {
    match in_millis.bytes().and_then(time::digits) {
        Some(millis) => Some(Duration::from_millis(millis)),
        None => in_seconds(line, date),
    }
}

fn in_seconds(line: Line<'_>, date: impl FnOnce() -> Duration) -> Option<Duration> {
    let text = line.text()?;
    match time::digits(text.as_bytes()) {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => Some(time::http_date(text)?.saturating_sub(date())),
    }
}
