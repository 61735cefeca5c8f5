//! Times as clients of these APIs read them.

use std::time::Duration;

/// Whole milliseconds, rounded up.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A duration as `time.Duration` of Go prints it, in milliseconds rounded up: `120ms`, `1.5s`, `6m0s`, `23h59m8.64s`.
pub(super) fn go_duration(time: Duration) -> String {
    let millis = millis(time);
    if millis == 0 {
        return "0s".into();
    }
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    let (seconds, fraction) = (millis / 1_000, millis % 1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let seconds = match fraction {
        0 => format!("{seconds}s"),
        _ => format!("{seconds}.{}s", format!("{fraction:03}").trim_end_matches('0')),
    };
    match (hours, minutes) {
        (0, 0) => seconds,
        (0, _) => format!("{minutes}m{seconds}"),
        _ => format!("{hours}h{minutes}m{seconds}"),
    }
}

/// A time after the Unix epoch as RFC 3339 writes it in UTC, in seconds rounded up; at most the year 9999, after which
/// RFC 3339 ends.
pub(super) fn rfc3339(since_epoch: Duration) -> String {
    const YEAR_9999: u64 = 253_402_300_799;
    const DAY: u64 = 86_400;
    let seconds = millis(since_epoch).div_ceil(1_000).min(YEAR_9999);
    let (day, second) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day after the Unix epoch, in the Gregorian calendar. After Howard Hinnant, "chrono-Compatible Low-Level
/// Date Algorithms", `civil_from_days`: years begin with March, so that the leap day is the last one.
const fn date(day: u64) -> (u64, u64, u64) {
    // From 1 March of the year 0.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_go_prints_them() {
        for (millis, text) in [
            (0, "0s"),
            (1, "1ms"),
            (120, "120ms"),
            (1_000, "1s"),
            (1_500, "1.5s"),
            (8_640, "8.64s"),
            (60_000, "1m0s"),
            (360_000, "6m0s"),
            (179_560, "2m59.56s"),
            (3_600_000, "1h0m0s"),
            (86_348_640, "23h59m8.64s"),
        ] {
            assert_eq!(go_duration(Duration::from_millis(millis)), text);
        }
        assert_eq!(go_duration(Duration::from_nanos(1)), "1ms");
    }

    #[test]
    fn times_are_in_utc_and_never_early() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_795_375_999, "2026-11-22T19:33:19Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
        assert_eq!(rfc3339(Duration::from_micros(1)), "1970-01-01T00:00:01Z");
    }
}
