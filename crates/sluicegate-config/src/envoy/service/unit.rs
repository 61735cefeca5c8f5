use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::limit::LimitError;

/// A unit of time of Envoy's rate limit service. A month has 30 days, a year 365.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    /// All units, from the shortest.
    pub const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// How long it is.
    pub const fn period(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
            Self::Month => 30 * 86_400,
            Self::Year => 365 * 86_400,
        })
    }

    /// The unit of this length.
    pub fn of(period: Duration) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.period() == period)
    }

    /// Its name in the protocol: `SECOND`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "SECOND",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Month => "MONTH",
            Self::Year => "YEAR",
        }
    }

    /// The unit with this name, in any letter case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name().eq_ignore_ascii_case(name))
    }

    /// A fixed window of `count` in each unit, with this name. What was spent is kept when the count changes. No
    /// window holds 0: a rule of 0 refuses by itself.
    pub(super) fn window(self, count: u32, name: &str) -> Result<Limit, LimitError> {
        Limit::try_fixed_window(u64::from(count.max(1)), self.period())?
            .try_named(name)?
            .try_carried()
    }
}
