use std::fmt;

use crate::limit::LimitError;

/// Why tiers cannot be made or changed: a sentence that names the bad part.
///
/// ```
/// use sluicegate::{Limit, Tiers};
///
/// let tiers = Tiers::new("api").tier("free", Limit::per_second(5)).unlimited("partner");
/// let error = tiers.try_otherwise("fre").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "there is no tier `fre` among those of `api`, which are `free` and `partner`",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierError {
    tiers: String,
    tier: String,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    /// With the existing tiers.
    Unknown(Vec<String>),
    Twice,
    Limits(Box<LimitError>),
}

impl TierError {
    pub(super) fn unknown(tiers: &str, known: Vec<String>, tier: &str) -> Self {
        Self { tiers: tiers.into(), tier: tier.into(), problem: Problem::Unknown(known) }
    }

    pub(super) fn twice(tiers: &str, tier: &str) -> Self {
        Self { tiers: tiers.into(), tier: tier.into(), problem: Problem::Twice }
    }

    pub(super) fn limits(tiers: &str, tier: &str, error: LimitError) -> Self {
        Self { tiers: tiers.into(), tier: tier.into(), problem: Problem::Limits(error.into()) }
    }

    /// The name of the tier, as it was written.
    pub fn tier(&self) -> &str {
        &self.tier
    }
}

impl fmt::Display for TierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tiers, tier, problem } = self;
        match problem {
            Problem::Unknown(known) => {
                write!(f, "there is no tier `{tier}` among those of `{tiers}`")?;
                write_known(f, known)
            }
            Problem::Twice => write!(f, "there are two tiers `{tier}` among those of `{tiers}`"),
            Problem::Limits(error) => write!(f, "the tier `{tier}` of `{tiers}`: {error}"),
        }
    }
}

fn write_known(f: &mut fmt::Formatter<'_>, known: &[String]) -> fmt::Result {
    match known {
        [] => f.write_str(", which has none"),
        [one] => write!(f, ", which is `{one}`"),
        [first @ .., last] => write!(f, ", which are `{}` and `{last}`", first.join("`, `")),
    }
}

impl std::error::Error for TierError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Limits(error) => Some(&**error),
            Problem::Unknown(_) | Problem::Twice => None,
        }
    }
}
