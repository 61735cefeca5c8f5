use std::fmt;
use std::str::FromStr;

use super::error::HoursError;

/// A day of the week.
///
/// Reads from its English name or the first three letters of that, in upper or lower case.
///
/// ```
/// use sluicegate::condition::Weekday;
///
/// assert_eq!("sat".parse::<Weekday>()?, Weekday::Saturday);
/// assert_eq!(Weekday::Saturday.to_string(), "saturday");
/// # Ok::<(), sluicegate::condition::HoursError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weekday {
    /// The first day of the week.
    Monday,
    /// The second day.
    Tuesday,
    /// The third day.
    Wednesday,
    /// The fourth day.
    Thursday,
    /// The fifth day.
    Friday,
    /// The sixth day.
    Saturday,
    /// The last day of the week.
    Sunday,
}

const DAYS: [(Weekday, &str); 7] = [
    (Weekday::Monday, "monday"),
    (Weekday::Tuesday, "tuesday"),
    (Weekday::Wednesday, "wednesday"),
    (Weekday::Thursday, "thursday"),
    (Weekday::Friday, "friday"),
    (Weekday::Saturday, "saturday"),
    (Weekday::Sunday, "sunday"),
];

impl Weekday {
    /// The day before.
    pub(super) fn yesterday(self) -> Self {
        DAYS[(self as usize + 6) % 7].0
    }
}

impl From<jiff::civil::Weekday> for Weekday {
    fn from(day: jiff::civil::Weekday) -> Self {
        match day {
            jiff::civil::Weekday::Monday => Self::Monday,
            jiff::civil::Weekday::Tuesday => Self::Tuesday,
            jiff::civil::Weekday::Wednesday => Self::Wednesday,
            jiff::civil::Weekday::Thursday => Self::Thursday,
            jiff::civil::Weekday::Friday => Self::Friday,
            jiff::civil::Weekday::Saturday => Self::Saturday,
            jiff::civil::Weekday::Sunday => Self::Sunday,
        }
    }
}

impl FromStr for Weekday {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<Self, HoursError> {
        let named =
            |name: &str| text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(&name[..3]);
        let day = DAYS.iter().find(|(_, name)| named(name));
        day.map(|&(day, _)| day).ok_or_else(|| HoursError::weekday(text))
    }
}

impl fmt::Display for Weekday {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DAYS[*self as usize].1)
    }
}

/// Some days of the week, a bit for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weekdays(u8);

impl Weekdays {
    pub(super) const ALL: Self = Self(0b111_1111);

    pub(super) fn contains(self, day: Weekday) -> bool {
        self.0 & 1 << day as u8 != 0
    }
}

impl FromIterator<Weekday> for Weekdays {
    fn from_iter<I: IntoIterator<Item = Weekday>>(days: I) -> Self {
        Self(days.into_iter().fold(0, |bits, day| bits | 1 << day as u8))
    }
}
