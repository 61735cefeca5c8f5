#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::shape::{Amount, deserialize_texts_or_tables};

/// A limit: a text such as `100/minute burst 20`, or a table.
///
/// The text starts with the algorithm: `leaky`, `fixed` (fixed window), `log` (sliding log), `sliding` (sliding
/// window), or nothing for a token bucket. The rate follows, such as `100/minute` or `10 per 2 hours`. For
/// concurrency, algorithm and rate are `concurrent 5`. Options come last: `burst 20`, `stepped`,
/// `queue 10`, `delay-after 5`, `from-first`, `resolution 1 minute`, `count-refused`, `min-gap 250ms`,
/// `soft 15`, `over 10%`, `ban 5 minutes`, `ban 5 minutes after 3 in 1 minute`, `shadow`, `when-full refuse`,
/// `named daily`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum Limit {
    /// A text, such as `100/minute burst 20`.
    Text(String),
    /// A table.
    Table(LimitTable),
}

/// A limit as a table.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitTable {
    /// The rate, such as `100/minute` or `10 per 2 hours`. It may include the algorithm and options, as in
    /// `log 5/hour`.
    pub(crate) rate: String,
    /// The name of the limit, instead of one made from the rule and the period.
    pub(crate) name: Option<String>,
    /// The largest burst of a token bucket. The default is the number of the rate.
    pub(crate) burst: Option<u64>,
    /// The soft limit, from which the client is warned: a number, or a percentage of the burst.
    pub(crate) soft: Option<Amount>,
    /// Admits this percentage more, such as `10%`. The original limit becomes the soft limit, unless `soft` is
    /// set.
    pub(crate) over: Option<String>,
    /// Bans a key that exceeds the limit for a time.
    pub(crate) ban: Option<Ban>,
    /// Whether this is a shadow limit: requests that it would refuse are reported and admitted.
    pub(crate) shadow: Option<bool>,
    /// What happens to a new key when the store is full. By default, limits that recover within ten seconds
    /// admit it, and all others count new keys together.
    pub(crate) when_full: Option<WhenFull>,
}

/// What happens to a new key when the store is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum WhenFull {
    /// It is admitted and not counted.
    Admit,
    /// It is refused: `503 Service Unavailable`.
    Refuse,
    /// It shares its budget with other new keys.
    Together,
}

/// How long a key is banned: a text such as `5 minutes`, or a table.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum Ban {
    /// A time. The ban begins with the first refusal.
    Time(String),
    /// A time, and the number of refusals before the ban begins.
    Table(BanTable),
}

/// How long a key is banned, and after how many refusals.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct BanTable {
    /// The duration of the ban, such as `5 minutes`.
    #[serde(rename = "for")]
    pub(crate) time: String,
    /// The refusal that begins the ban. The default is 1, the first.
    pub(crate) after: Option<u64>,
    /// The time within which these refusals must occur, such as `1 minute`.
    pub(crate) within: Option<String>,
}

deserialize_texts_or_tables! {
    Limit: "a limit such as \"100/minute burst 20\" or { rate = \"100/minute\", burst = 20 }",
        Text, Table(LimitTable);
    Ban: "a time such as \"5 minutes\" or { for = \"5 minutes\", after = 3, within = \"1 minute\" }",
        Time, Table(BanTable);
}
