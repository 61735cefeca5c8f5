//! Hours of the day, by the wall clocks of a time zone, as a condition.
//!
//! An interval of hours is what wall clocks show, not a duration. An hour that is skipped when clocks are put forward
//! does not come, and an hour that is shown twice holds twice. An answer is cached for its minute, in one word with
//! the minute, which costs 1 to 3 ns on top of the clock.

mod error;
mod interval;
mod seen;
#[cfg(test)]
mod tests;
mod weekday;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use self::error::HoursError;
pub use self::weekday::Weekday;

use self::interval::Interval;
use self::seen::Seen;
use self::weekday::Weekdays;
use crate::clock::Clock;
use crate::condition::{ChosenBy, Condition};
use crate::key::{Missing, View};

/// Microseconds in a minute: nothing said in hours and minutes changes within one.
const MINUTE: u64 = 60_000_000;

/// Holds at certain hours of the day, on certain days of the week, in a time zone.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::{Ip, Limit, ManualClock, when};
/// use sluicegate::condition::{Hours, Weekday};
///
/// let nights = Hours::in_zone("Europe/Berlin")?
///     .between("22:00", "06:00")?
///     .on([Weekday::Friday, Weekday::Saturday]);
/// // One budget, whichever of the limits holds.
/// let rule = when(nights.clone(), Limit::per_minute(600).named("api"))
///     .otherwise(Limit::per_minute(60).named("api"))
///     .by(Ip::peer());
///
/// // Half past one in the night from Saturday to Sunday.
/// let clock = ManualClock::at(Duration::from_secs(1_768_091_400));
/// assert!(nights.clock(&clock).hold_now());
/// # let _ = rule;
/// # Ok::<(), sluicegate::condition::HoursError>(())
/// ```
///
/// Without [`between`](Self::between) the whole day holds, and without [`on`](Self::on) every day.
///
/// # When the clocks are changed
///
/// It holds whenever a wall clock there shows a time within an interval. When clocks are put forward from 02:00 to
/// 03:00, no clock shows the time between: 02:15 to 02:45 does not come that day, and 02:30 to 04:00 begins at 03:00.
/// When they are put back from 03:00 to 02:00, the hour comes twice: 02:15 to 02:45 holds twice, and 01:00 to 02:30
/// ends, and goes on for half an hour when clocks are put back.
///
/// # Time
///
/// The time is that of sluicegate's [`Clock`], which follows the monotonic clock from its first use. After the
/// system's time was set, or the machine was asleep, it is off by that much until the process is restarted. The rules
/// of the time zone are the system's; if the system has none, those that are compiled in. They are read once, when
/// this is made.
///
/// The zone is looked up once a minute. Otherwise a check reads the clock and one word.
#[derive(Debug, Clone)]
#[must_use]
pub struct Hours {
    zone: TimeZone,
    intervals: Vec<Interval>,
    days: Weekdays,
    clock: Clock,
    seen: Seen,
}

impl Hours {
    /// All hours of all days in this time zone, by its IANA name: `Europe/Berlin`, `UTC`.
    ///
    /// # Errors
    ///
    /// If there is no time zone with that name.
    pub fn in_zone(name: impl AsRef<str>) -> Result<Self, HoursError> {
        let name = name.as_ref();
        let zone = TimeZone::get(name).map_err(|error| HoursError::zone(name, Some(error)))?;
        // `Etc/Unknown` means that the zone is not known, and would be treated as UTC.
        if zone.is_unknown() {
            return Err(HoursError::zone(name, None));
        }
        Ok(Self {
            zone,
            intervals: Vec::new(),
            days: Weekdays::ALL,
            clock: Clock::machine(),
            seen: Seen::default(),
        })
    }

    /// From `from` until just before `to`, hours and minutes on the 24-hour clock; also from then, if
    /// other intervals were said before.
    ///
    /// If `to` is not after `from`, it is a time of the next day, and the interval belongs to the day on which it
    /// begins. An interval that ends with the day ends at `24:00` or `00:00`.
    ///
    /// # Errors
    ///
    /// If one of them is not a time of day, or both are the same.
    pub fn between(
        mut self,
        from: impl AsRef<str>,
        to: impl AsRef<str>,
    ) -> Result<Self, HoursError> {
        self.intervals.push(Interval::parse(from.as_ref(), to.as_ref())?);
        Ok(Self { seen: Seen::default(), ..self })
    }

    /// Only on these days: every interval that begins on one of them, to its end. The last call counts. Without any
    /// day, it never holds.
    pub fn on(self, days: impl IntoIterator<Item = Weekday>) -> Self {
        Self { days: days.into_iter().collect(), seen: Seen::default(), ..self }
    }

    /// Takes the time from this clock instead of the machine's, for example from a manual clock in tests.
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        Self { clock: clock.into(), seen: Seen::default(), ..self }
    }

    /// Whether it holds now, for callers that have no request.
    #[inline]
    pub fn hold_now(&self) -> bool {
        self.seen.at(self.clock.now() / MINUTE, |minute| self.hold_at(minute))
    }

    /// Whether it holds in this minute since the Unix epoch.
    #[cold]
    fn hold_at(&self, minute: u64) -> bool {
        // Clocks end in the year 2255, and jiff much later.
        let seconds = i64::try_from(minute * 60).unwrap_or(i64::MAX);
        let instant = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        let shown = self.zone.to_datetime(instant);
        let [hours, minutes] =
            [shown.hour(), shown.minute()].map(|part| u16::from(part.unsigned_abs()));
        let time = 60 * hours + minutes;
        let today = shown.weekday().into();

        let within = |interval: &Interval| interval.holds(today, time, self.days);
        if self.intervals.is_empty() {
            within(&Interval::WHOLE_DAY)
        } else {
            self.intervals.iter().any(within)
        }
    }
}

impl<V: View> Condition<V> for Hours {
    #[inline]
    fn holds(&self, _: &V) -> Result<bool, Missing> {
        Ok(self.hold_now())
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}
