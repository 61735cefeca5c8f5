use std::fmt;

use sluicegate_core::Limit;
use sluicegate_core::limit::LimitError;

use super::unit::Unit;

/// The limit that a descriptor meets.
#[derive(Debug, Clone, PartialEq)]
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
}

impl Rate {
    /// A rate whose limit has this name in metrics.
    pub(super) fn new(count: u32, unit: Unit, name: &str) -> Result<Self, LimitError> {
        Ok(Self { count, unit, limit: unit.window(count, name)? })
    }

    /// The limit that counts. It admits 1 where the rate allows 0.
    pub const fn limit(&self) -> Limit {
        self.limit
    }
}

impl Rule {
    /// A rule that a request brings along instead of that of the file.
    pub(super) fn of_request(count: u32, unit: Unit) -> Result<Self, LimitError> {
        let rate = Rate::new(count, unit, "request")?;
        Ok(Self { rate: Some(rate), name: None, replaces: Vec::new(), shadow: false, quota: false })
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
