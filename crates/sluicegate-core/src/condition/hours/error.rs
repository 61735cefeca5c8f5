use std::error::Error;
use std::fmt;

/// Why [`Hours`](super::Hours) could not be made.
///
/// ```
/// use sluicegate::condition::Hours;
///
/// let error = Hours::in_zone("Europe/Berlin")?.between("22:00", "25:00").unwrap_err();
/// assert_eq!(error.part(), "25:00");
/// assert_eq!(
///     error.to_string(),
///     "`25:00` is no time of day: hours and minutes from `00:00` to `24:00`, such as `09:30`",
/// );
/// # Ok::<(), sluicegate::condition::HoursError>(())
/// ```
#[derive(Debug, Clone)]
pub struct HoursError {
    part: String,
    problem: Problem,
}

#[derive(Debug, Clone)]
enum Problem {
    Zone(Option<jiff::Error>),
    Time,
    Start,
    Empty,
    Weekday,
}

impl HoursError {
    /// The part that is wrong, as it was written.
    pub fn part(&self) -> &str {
        &self.part
    }

    pub(super) fn zone(name: &str, why: Option<jiff::Error>) -> Self {
        Self { part: name.into(), problem: Problem::Zone(why) }
    }

    pub(super) fn time(text: &str) -> Self {
        Self { part: text.into(), problem: Problem::Time }
    }

    pub(super) fn start(text: &str) -> Self {
        Self { part: text.into(), problem: Problem::Start }
    }

    pub(super) fn empty(text: &str) -> Self {
        Self { part: text.into(), problem: Problem::Empty }
    }

    pub(super) fn weekday(text: &str) -> Self {
        Self { part: text.into(), problem: Problem::Weekday }
    }
}

impl fmt::Display for HoursError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.part)?;
        f.write_str(match self.problem {
            Problem::Zone(_) => "is no time zone: IANA names are such as `Europe/Berlin`",
            Problem::Time => {
                "is no time of day: hours and minutes from `00:00` to `24:00`, such as `09:30`"
            }
            Problem::Start => "can end an interval, but none begins then: that is `00:00`",
            Problem::Empty => {
                "is where the interval begins and where it ends: a whole day is `00:00` to `24:00`"
            }
            Problem::Weekday => "is no day of the week: such as `monday`, or `mon`",
        })
    }
}

impl Error for HoursError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            Problem::Zone(Some(why)) => Some(why),
            _ => None,
        }
    }
}
