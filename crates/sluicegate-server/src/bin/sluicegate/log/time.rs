//! The times of a log.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// The seconds by which a zone such as `+0100`, `+01:00` or `-05` is ahead of UTC.
pub(super) fn offset(zone: &str) -> Option<i32> {
    let (sign, digits) = zone.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let number = |at: usize| digits.get(at..at + 2)?.parse::<i32>().ok();
    let minutes = if digits.contains(':') { number(3)? } else { number(2).unwrap_or(0) };
    Some(sign * (number(0)? * 3_600 + minutes * 60))
}

/// Nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instant {
    pub(super) ns: i64,
    /// The unit that it was written in.
    pub(super) unit: i64,
}

const SECOND: i64 = 1_000_000_000;

/// Reads times. Most lines are of the same minute as the line before.
#[derive(Debug)]
pub(super) struct TimeReader {
    /// Of times that name no zone.
    zone: TimeZone,
    /// How times are written, where the format says so.
    pattern: Option<String>,
    /// The minute and the zone that were read last, as text, and the instant that the minute begins at.
    minute: String,
    offset: String,
    begins: i64,
    /// The latest instant so far.
    latest: i64,
    /// The finest unit so far.
    resolution: i64,
}

impl TimeReader {
    pub(super) fn new(zone: TimeZone, pattern: Option<String>) -> Self {
        Self {
            zone,
            pattern,
            minute: String::new(),
            offset: String::new(),
            begins: 0,
            latest: 0,
            resolution: SECOND,
        }
    }

    /// Times have this unit too, in nanoseconds.
    pub(super) fn refine(&mut self, unit: u64) {
        self.resolution = self.resolution.min(i64::try_from(unit).unwrap_or(SECOND));
    }

    pub(super) fn resolution(&self) -> u64 {
        self.resolution.unsigned_abs()
    }

    /// Seconds since the epoch, or a finer unit, which the size of the number tells.
    pub(super) fn number(&mut self, number: f64) -> Option<Instant> {
        let unit = match number {
            ..0.0 => return None,
            ..1e11 => SECOND,
            ..1e14 => 1_000_000,
            ..1e17 => 1_000,
            _ => 1,
        };
        // A float has no more than microseconds.
        let finest = if number.fract() == 0.0 { unit } else { 1_000.min(unit) };
        self.resolution = self.resolution.min(finest);
        let ns = number * unit as f64;
        (ns < 9e18).then(|| Instant { ns: (ns / 1e3).round() as i64 * 1_000, unit: finest })
    }

    #[inline]
    pub(super) fn read(&mut self, text: &str) -> Option<Instant> {
        if self.pattern.is_some() {
            return self.by_pattern(text);
        }
        let bytes = text.as_bytes();
        match bytes {
            // 10/Oct/2000:13:55:36 -0700
            [_, _, b'/', _, _, _, b'/', ..] => self.civil(text, 17, clf),
            // 2000-10-10T13:55:36-07:00
            [_, _, _, _, b'-', _, _, b'-', ..] => self.civil(text, 16, iso),
            _ => self.epoch(text),
        }
    }

    /// `len`: how long the text is up to the minute.
    #[inline]
    fn civil(
        &mut self,
        text: &str,
        len: usize,
        read: fn(&str) -> Option<DateTime>,
    ) -> Option<Instant> {
        let (minute, rest) = text.split_at_checked(len)?;
        let (seconds, rest) = match rest.as_bytes() {
            [b':', tens @ b'0'..=b'9', ones @ b'0'..=b'9', ..] => {
                (i64::from(tens - b'0') * 10 + i64::from(ones - b'0'), rest.get(3..)?)
            }
            // Without seconds.
            _ => return None,
        };
        let (fraction, rest) = match rest.strip_prefix(['.', ',']) {
            None => ((0, SECOND), rest),
            Some(rest) => {
                let end =
                    rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
                let (digits, rest) = rest.split_at(end);
                (self.fraction(digits), rest)
            }
        };
        if self.minute != minute || self.offset != rest {
            self.begins = self.minute(read(minute)?, rest)?;
            self.latest = self.latest.max(self.begins);
            minute.clone_into(&mut self.minute);
            rest.clone_into(&mut self.offset);
        }
        let (fraction, unit) = fraction;
        Some(Instant { ns: self.begins.checked_add(seconds * SECOND + fraction)?, unit })
    }

    /// The instant that a minute begins at, of a zone written as `Z`, `+0100`, `+01:00`, `UTC` or not at all.
    fn minute(&self, time: DateTime, zone: &str) -> Option<i64> {
        let zone = match zone.trim() {
            "" => self.zone.clone(),
            "Z" | "z" | "UTC" | "GMT" => TimeZone::UTC,
            zone => TimeZone::fixed(Offset::from_seconds(offset(zone)?).ok()?),
        };
        self.instant(&zone, time)
    }

    /// The instant of a local time. Where clocks are set back, an hour comes twice: a time is that one of the two which is closer
    /// to the latest so far. Lines are written when responses end, so their times may go back.
    fn instant(&self, zone: &TimeZone, time: DateTime) -> Option<i64> {
        let nanos = |instant: Timestamp| i64::try_from(instant.as_nanosecond()).ok();
        let ambiguous = zone.to_ambiguous_timestamp(time);
        let first = nanos(ambiguous.compatible().ok()?)?;
        if !matches!(ambiguous.offset(), AmbiguousOffset::Fold { .. }) {
            return Some(first);
        }
        let second = nanos(ambiguous.later().ok()?)?;
        let distance = |instant: i64| instant.abs_diff(self.latest);
        Some(if distance(second) < distance(first) { second } else { first })
    }

    /// The digits behind the point, in nanoseconds, and the unit of the last one.
    fn fraction(&mut self, digits: &str) -> (i64, i64) {
        let mut place = SECOND;
        let mut total = 0;
        for digit in digits.bytes().take(9) {
            place /= 10;
            total += i64::from(digit.wrapping_sub(b'0')) * place;
        }
        self.resolution = self.resolution.min(place);
        (total, place)
    }

    /// Seconds since the epoch, with a fraction, or a whole number in a finer unit.
    fn epoch(&mut self, text: &str) -> Option<Instant> {
        let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
        if whole.len() > 19
            || !whole.bytes().chain(digits.bytes()).all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let number: i64 = whole.parse().ok()?;
        let unit = match whole.len() {
            ..=11 => SECOND,
            12..=14 => 1_000_000,
            15..=17 => 1_000,
            _ => 1,
        };
        self.resolution = self.resolution.min(unit);
        let (fraction, unit_of_last) =
            if unit == SECOND { self.fraction(digits) } else { (0, unit) };
        Some(Instant { ns: number.checked_mul(unit)?.checked_add(fraction)?, unit: unit_of_last })
    }

    fn by_pattern(&mut self, text: &str) -> Option<Instant> {
        let pattern = self.pattern.as_deref()?;
        let parsed = strtime::parse(pattern, text).ok()?;
        let ns = match parsed.to_timestamp() {
            Ok(instant) => i64::try_from(instant.as_nanosecond()).ok()?,
            Err(_) => self.instant(&self.zone, parsed.to_datetime().ok()?)?,
        };
        // A time that is no multiple of a unit was written in a finer one.
        let unit =
            [SECOND, 1_000_000, 1_000, 1].into_iter().find(|unit| ns % unit == 0).unwrap_or(1);
        self.resolution = self.resolution.min(unit);
        self.latest = self.latest.max(ns);
        Some(Instant { ns, unit })
    }
}

fn number(text: &str) -> Option<i8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `10/Oct/2000:13:55`
fn clf(text: &str) -> Option<DateTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = text.get(3..6)?;
    let month = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(month))? as i8 + 1;
    let year = text.get(7..11)?.parse().ok()?;
    DateTime::new(
        year,
        month,
        number(text.get(..2)?)?,
        number(text.get(12..14)?)?,
        number(text.get(15..17)?)?,
        0,
        0,
    )
    .ok()
}

/// `2000-10-10T13:55`
fn iso(text: &str) -> Option<DateTime> {
    let year = text.get(..4)?.parse().ok()?;
    let [month, day, hour, minute] =
        [5..7, 8..10, 11..13, 14..16].map(|range| text.get(range).and_then(number));
    DateTime::new(year, month?, day?, hour?, minute?, 0, 0).ok()
}
