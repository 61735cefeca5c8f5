#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};

use super::Amount;
use super::shaped::{Shaped, deserialize_shaped};

/// How much may be spent in how much time: a text such as `100/minute burst 20`, or a table.
///
/// The text begins with the algorithm, unless it is a token bucket: `leaky`, `fixed` (a window), `log` (a
/// sliding one), `sliding` (the same, approximated). Then comes the rate, `100/minute` or
/// `10 per 2 hours`; or the whole is `concurrent 5`. Then follow options: `burst 20`, `stepped`,
/// `queue 10`, `delay-after 5`, `from-first`, `resolution 1 minute`, `count-refused`, `min-gap 250ms`,
/// `soft 15`, `over 10%`, `ban 5 minutes`, `ban 5 minutes after 3 in 1 minute`, `shadow`, `when-full refuse`,
/// `named daily`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub enum Limit {
    /// A text, such as `100/minute burst 20`.
    Text(String),
    /// A table, for what a text cannot say.
    Table(LimitTable),
}

/// A limit, part by part.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitTable {
    /// The rate, such as `100/minute` or `10 per 2 hours`; the algorithm and every option of a limit's
    /// text may stand there as well, as in `log 5/hour`.
    pub rate: String,
    /// What the limit is called, instead of being named after its rule.
    #[serde(default)]
    pub name: Option<String>,
    /// The most at once; token buckets only. As much as the count of the rate, unless said otherwise.
    #[serde(default)]
    pub burst: Option<u64>,
    /// From where on the client is warned: a number, or a percentage of the most at once.
    #[serde(default)]
    pub soft: Option<Amount>,
    /// Lets so much more through, in percent: `10%`. What was the limit is the soft limit then, unless
    /// `soft` is said as well.
    #[serde(default)]
    pub over: Option<String>,
    /// Keeps out for a time whoever exceeds the limit.
    #[serde(default)]
    pub ban: Option<Ban>,
    /// Whether the limit is only on trial: what it would refuse is told, and let through.
    #[serde(default)]
    pub shadow: bool,
    /// What happens to a new key when the store has no room for it. Unless it is said, limits that recover in
    /// ten seconds admit it, and all others count new keys together.
    #[serde(default)]
    pub when_full: Option<WhenFull>,
}

/// What happens to a new key when the store has no room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// The limit is not counted for it.
    Admit,
    /// It is refused: `503 Service Unavailable`.
    Refuse,
    /// New keys share some rows of the limit, and what it admits to a key.
    Together,
}

/// For how long somebody is kept out: a text such as `5 minutes`, or a table.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub enum Ban {
    /// A time: the ban begins with the first refusal.
    Time(String),
    /// A time, and after how many refusals the ban begins.
    Table(BanTable),
}

/// For how long somebody is kept out, and after how many refusals.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BanTable {
    /// For how long, such as `5 minutes`.
    #[serde(rename = "for")]
    pub time: String,
    /// With which refusal the ban begins: the first, unless said otherwise.
    #[serde(default)]
    pub after: Option<u64>,
    /// The time within which these refusals have to come, such as `1 minute`.
    #[serde(default)]
    pub within: Option<String>,
}

impl<'de> Shaped<'de> for Limit {
    const EXPECTED: &'static str =
        "a limit such as \"100/minute burst 20\" or { rate = \"100/minute\", burst = 20 }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Text(text.to_owned()))
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        LimitTable::deserialize(MapAccessDeserializer::new(table)).map(Self::Table)
    }
}

impl<'de> Shaped<'de> for Ban {
    const EXPECTED: &'static str =
        "a time such as \"5 minutes\" or { for = \"5 minutes\", after = 3, within = \"1 minute\" }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Time(text.to_owned()))
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        BanTable::deserialize(MapAccessDeserializer::new(table)).map(Self::Table)
    }
}

deserialize_shaped!(Limit, Ban);
