use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Times longer than this are read as this: a century. Callers cap them by their settings, far below.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A number of digits only. A number that is too large becomes the largest possible one.
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => Some(number.saturating_mul(10).saturating_add(u64::from(byte - b'0'))),
        _ => None,
    })
}

/// The time after the epoch that an HTTP-date names.
pub(super) fn http_date(text: &str) -> Option<Duration> {
    httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()
}

/// The time after the epoch that RFC 3339 writes in UTC, as `2026-11-22T20:15:00Z`. A part of a second is rounded up.
fn rfc3339(text: &str) -> Option<Duration> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) =
        time.split_once('.').map_or((time, None), |(time, part)| (time, Some(part)));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let is_time = (1_970..=9_999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        // A leap second.
        && second <= 60;
    if !is_time {
        return None;
    }
    let part = match fraction {
        Some(digits_of) => u64::from(digits(digits_of.as_bytes())? > 0),
        None => 0,
    };
    // Years begin with March, so that the leap day is the last one. 719,468 days are from 1 March of the year 0 to the
    // epoch.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Duration::from_secs(seconds + part))
}

/// Three numbers between separators.
fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.splitn(3, separator).map(|part| digits(part.as_bytes()));
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// A time that is written as seconds (`30`, `0.5`), or as a duration of Go (`6m0s`, `120ms`).
pub(super) fn duration(text: &str) -> Option<Duration> {
    const NANOS: [(&str, u64); 6] = [
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, unit) = rest.split_at(end);
        let (name, nanos) = match NANOS.iter().find(|(name, _)| unit.starts_with(name)) {
            Some(found) => *found,
            None if unit.is_empty() && end == text.len() => ("", 1_000_000_000),
            None => return None,
        };
        total = total.saturating_add(times(number, nanos)?);
        rest = &unit[name.len()..];
    }
    (!text.is_empty()).then_some(total.min(LONGEST))
}

/// `number` times this many nanoseconds, rounded up.
fn times(number: &str, nanos: u64) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = digits(whole.as_bytes())?;
    let mut part = 0;
    if !fraction.is_empty() {
        // The tenth digit of a second is less than a nanosecond; of an hour, less than a microsecond.
        let shown = &fraction.as_bytes()[..fraction.len().min(9)];
        let scale = 10_u128.pow(shown.len() as u32);
        part = (u128::from(digits(shown)?) * u128::from(nanos)).div_ceil(scale);
        digits(fraction.as_bytes())?;
    }
    let total = (u128::from(whole) * u128::from(nanos) + part).min(LONGEST.as_nanos());
    const SECOND: u128 = 1_000_000_000;
    Some(Duration::new((total / SECOND) as u64, (total % SECOND) as u32))
}

/// The time from `date` to a reset that is told as a point in time or as a time from now on.
///
/// A number of seconds that would be longer than thirty years is a point in time, in seconds after the Unix epoch, or
/// in milliseconds if it is longer than thirty thousand years. A point that has passed is now.
pub(super) fn until_reset(text: &str, date: impl FnOnce() -> Duration) -> Option<Duration> {
    const YEARS_30: u64 = 1_000_000_000;
    const YEARS_30_000: u64 = YEARS_30 * 1_000;
    let time = match digits(text.as_bytes()) {
        Some(number @ YEARS_30_000..) => Duration::from_millis(number).saturating_sub(date()),
        Some(number @ YEARS_30..) => Duration::from_secs(number).saturating_sub(date()),
        Some(number) => Duration::from_secs(number),
        None if text.contains('T') => rfc3339(text)?.saturating_sub(date()),
        None => match duration(text)? {
            point if point.as_secs() >= YEARS_30 => point.saturating_sub(date()),
            time => time,
        },
    };
    Some(time.min(LONGEST))
}

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// `Retry-After` in both forms (RFC 9110, 10.2.3), as a time from now on.
///
/// A date counts from the `Date` of the same response, so that a clock that goes wrong on either side does not matter.
/// A proxy may add a line to the one of the server, or join both to one: the latest instant of those that can be read
/// holds for both of them. Some services write seconds with a point, such as `2.0`, which the RFC does not allow.
///
/// `retry-after-ms` is the same time in milliseconds, which services with OpenAI's API send beside it. It comes first, as in
/// OpenAI's clients.
pub(super) fn retry_after(headers: &HeaderMap, date: impl Fn() -> Duration) -> Option<Duration> {
    let lines = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let in_millis = |line| times(std::str::from_utf8(line).ok()?.trim(), 1_000_000);
    lines(&RETRY_AFTER_MS).filter_map(in_millis).max().or_else(|| {
        let in_seconds = |line| in_seconds(std::str::from_utf8(line).ok()?.trim(), &date);
        lines(&header::RETRY_AFTER).filter_map(in_seconds).max()
    })
}

fn in_seconds(text: &str, date: impl Fn() -> Duration) -> Option<Duration> {
    let one = |text: &str| match digits(text.as_bytes()) {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => {
            times(text, 1_000_000_000).or_else(|| Some(http_date(text)?.saturating_sub(date())))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_and_plain_seconds_are_read() {
        let millis = |text| duration(text).map(|time| time.as_micros() as f64 / 1_000.0);
        for (text, expected) in [
            ("6m0s", 360_000.0),
            ("1s", 1_000.0),
            ("120ms", 120.0),
            ("1h2m3.5s", 3_723_500.0),
            ("59.7s", 59_700.0),
            ("0", 0.0),
            ("30", 30_000.0),
            ("1.250", 1_250.0),
            ("17us", 0.017),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in
            ["", "s", "-1", "+1", "1x", "1 s", "1s2", "..", "1..2s", "1.2.3s", "1e9", "ms5", "5ms6"]
        {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(duration(&"9".repeat(400)), Some(LONGEST));
        assert_eq!(duration(&format!("{}h", "9".repeat(400))), Some(LONGEST));
    }

    #[test]
    fn times_of_rfc_3339_are_read() {
        let secs = |text| rfc3339(text).map(|time| time.as_secs());
        assert_eq!(secs("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(secs("2000-02-29T00:00:00Z"), Some(951_782_400));
        assert_eq!(secs("2026-11-22T19:33:19Z"), Some(1_795_375_999));
        assert_eq!(secs("2026-11-22T19:33:19.001Z"), Some(1_795_376_000));
        assert_eq!(secs("9999-12-31T23:59:59Z"), Some(253_402_300_799));
        for text in [
            "T",
            "2026-11-22",
            "2026-11-22T19:33:19",
            "2026-13-22T19:33:19Z",
            "2026-11-22T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-11-22T19:33Z",
            "2026-11-22T19:33:19.xZ",
            "10000-01-01T00:00:00Z",
            "2026-11-22T19:33:99999999999999999999Z",
            "-1-01-01T00:00:00Z",
            "2026-0-01T00:00:00Z",
        ] {
            assert_eq!(secs(text), None, "{text}");
        }
    }

    #[test]
    fn a_reset_is_a_point_in_time_or_a_time_from_now() {
        let date = Duration::from_secs(1_700_000_000);
        let secs = |text| until_reset(text, || date).map(|time| time.as_secs());
        assert_eq!(secs("60"), Some(60));
        assert_eq!(secs("1700000060"), Some(60));
        assert_eq!(secs("1700000060000"), Some(60));
        assert_eq!(secs("1699999999"), Some(0));
        assert_eq!(secs("6m0s"), Some(360));
        assert_eq!(secs("2023-11-14T22:14:20Z"), Some(60));
        assert_eq!(secs("soon"), None);
    }
}
