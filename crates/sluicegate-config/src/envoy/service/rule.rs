use std::fmt;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::limit::LimitError;

use crate::envoy::limit_path::Names;

/// The limit that a descriptor meets.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Rule {
    /// What it allows. `None` is no limit at all.
    pub rate: Option<Rate>,
    /// The name of the limit in the file, by which other limits replace it.
    pub name: Option<Box<str>>,
    /// The names of the limits that it replaces in the same request.
    pub replaces: Vec<Box<str>>,
    /// Whether it is only counted, and refuses nothing.
    pub shadow: bool,
    /// Whether it is a quota: a request is refused once all quotas that it meets are spent.
    pub quota: bool,
    pub(super) statistic: Statistic,
}

/// What the statistics of a rule are called.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Statistic {
    /// The domain, and the way to the rule in the file: `edge.user_alice.path`.
    pub(super) name: Box<str>,
    /// Whether the name has the value of each entry instead.
    pub(super) detailed: bool,
    /// Whether the name has the values of some entries instead.
    pub(super) by_value: bool,
    /// A digest of the way, for a limit whose name another limit has.
    pub(super) digest: u32,
}

/// How much a rule allows in which unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests in each unit. 0 refuses everything.
    pub count: u32,
    /// The unit.
    pub unit: Unit,
    /// The limit that counts.
    pub(super) limit: Limit,
    /// The limit that counts where descriptors are counted apart: see [`COUNTED`].
    pub(super) counting: Limit,
}

/// How much a window counts where descriptors are counted apart. That is more than all of a rule: hits are counted over it too,
/// as in the service, and compared afterwards. So a store admits them all, and a rule that is changed finds the same count.
const COUNTED: u64 = 1 << 50;

/// The most hits of one descriptor that are counted then: more than every rule allows, and few enough for many calls.
pub(super) const MOST_HITS: u64 = 1 << 33;

impl Rate {
    /// A rate whose limit has this name in metrics.
    pub(super) fn new(count: u32, unit: Unit, name: &str) -> Result<Self, LimitError> {
        let limit = unit.window(u64::from(count.max(1)), name)?;
        Ok(Self { count, unit, limit, counting: unit.window(COUNTED, name)? })
    }

    /// The limit that counts. It admits 1 where the rate allows 0.
    pub const fn limit(&self) -> Limit {
        self.limit
    }
}

impl Rule {
    /// The name of its limit in metrics.
    pub(super) fn limit_name(&self) -> Option<String> {
        self.rate.map(|rate| rate.limit.name().to_string())
    }

    /// Gives its limit a name that is free. `way` is where the way to the rule begins in the name of its statistics.
    pub(super) fn rename(&mut self, way: usize, names: &mut Names) {
        let Statistic { name, digest, .. } = &self.statistic;
        let name = names.give(name.get(way..).unwrap_or_default(), *digest);
        self.rate = self.rate.map(|rate| Rate::new(rate.count, rate.unit, &name).unwrap_or(rate));
    }

    /// A rule that a request brings along instead of that of the file.
    pub(super) fn of_request(count: u32, unit: Unit) -> Result<Self, LimitError> {
        Ok(Self {
            rate: Some(Rate::new(count, unit, "request")?),
            name: None,
            replaces: Vec::new(),
            shadow: false,
            quota: false,
            statistic: Statistic { detailed: true, ..Statistic::default() },
        })
    }
}

/// In words: `user: 5 per minute, shadow`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            None => f.write_str("unlimited")?,
            Some(rate) => {
                let unit = rate.unit.name().to_lowercase();
                write!(f, "{}: {} per {unit}", rate.limit.name(), rate.count)?;
            }
        }
        f.write_str(if self.shadow { ", shadow" } else { "" })?;
        f.write_str(if self.quota { ", quota" } else { "" })
    }
}

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
    pub(super) fn window(self, count: u64, name: &str) -> Result<Limit, LimitError> {
        Limit::try_fixed_window(count, self.period())?.try_named(name)?.try_carried()
    }
}
