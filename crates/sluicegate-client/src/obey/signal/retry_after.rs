use std::time::Duration;

use http::{HeaderMap, header};

use super::{date, line, time};

/// `Retry-After` in both forms (RFC 9110, 10.2.3), as a time from now on.
///
/// A date counts from the `Date` of the same response, so that a clock that goes wrong on either side does not matter.
pub(super) fn read(headers: &HeaderMap, since_epoch: Duration) -> Option<Duration> {
    let text = line(headers, &header::RETRY_AFTER)?;
    match time::digits(text.as_bytes()) {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => Some(time::http_date(text)?.saturating_sub(date(headers, since_epoch))),
    }
}
