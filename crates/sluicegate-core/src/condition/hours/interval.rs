use super::error::HoursError;
use super::weekday::{Weekday, Weekdays};

/// Minutes in a day, as a wall clock shows them.
const DAY: u16 = 24 * 60;

/// From one time of day until just before another, in minutes since midnight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    from: u16,
    /// Not after `from` if it is a time of the next day.
    to: u16,
}

impl Interval {
    pub(super) const WHOLE_DAY: Self = Self { from: 0, to: DAY };

    pub(super) fn parse(from: &str, to: &str) -> Result<Self, HoursError> {
        let read = |text| time_of_day(text).ok_or_else(|| HoursError::time(text));
        let interval = Self { from: read(from)?, to: read(to)? };
        if interval.from == DAY {
            return Err(HoursError::start(from));
        }
        if interval.from == interval.to {
            return Err(HoursError::empty(from));
        }
        Ok(interval)
    }

    /// Whether it holds at this time of `today`, if intervals begin on these `days`.
    pub(super) fn holds(self, today: Weekday, time: u16, days: Weekdays) -> bool {
        if self.from < self.to {
            return days.contains(today) && (self.from..self.to).contains(&time);
        }
        let began_today = days.contains(today) && time >= self.from;
        let began_yesterday = days.contains(today.yesterday()) && time < self.to;
        began_today || began_yesterday
    }
}

/// Reads `09:30`, or `9:30`, as minutes since midnight.
fn time_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let hours = number(hours).filter(|_| hours.len() <= 2)?;
    let minutes = number(minutes).filter(|&number| minutes.len() == 2 && number < 60)?;
    Some(60 * hours + minutes).filter(|&time| time <= DAY)
}

/// Digits alone: `u16::from_str` would take a sign too.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
