use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess};

use super::shaped::{Shaped, deserialize_shaped, deserialize_tables};
use super::{Texts, Wildcard};

/// A condition on requests: all that is said has to hold.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Condition {
    /// The method is one of these, such as `["POST", "PUT"]`. `GET` is also `HEAD`.
    #[serde(default)]
    pub method: Option<Texts>,
    /// The path matches a pattern, such as `/login`, `/users/{id}` or `/api/*`.
    #[serde(default)]
    pub path: Option<Texts>,
    /// The route that matched has this pattern, such as `/users/{id}`.
    #[serde(default)]
    pub route: Option<Texts>,
    /// The host is this one, or matches, such as `api.example.com` or `*.example.com`.
    #[serde(default)]
    pub host: Option<Texts>,
    /// Headers by name, each with what is expected of it.
    #[serde(default)]
    pub header: BTreeMap<String, Expected>,
    /// Cookies by name, each with what is expected of it.
    #[serde(default)]
    pub cookie: BTreeMap<String, Expected>,
    /// Parameters of the query by name, each with what is expected of it.
    #[serde(default)]
    pub query: BTreeMap<String, Expected>,
    /// Claims by name, each with what is expected of it.
    #[serde(default)]
    pub claim: BTreeMap<String, Expected>,
    /// The client's address is in one of these networks, such as `["10.0.0.0/8", "2001:db8::/32"]`.
    #[serde(default)]
    pub network: Option<Texts>,
    /// The client's address is in one of these countries, by their codes, such as `["DE", "AT"]`. Needs
    /// `geoip`.
    #[serde(default)]
    pub country: Option<Texts>,
    /// The client's address is in one of these regions, by their codes, such as `["DE-BY"]`. Needs `geoip`.
    #[serde(default)]
    pub region: Option<Texts>,
    /// It is one of these hours.
    #[serde(default)]
    pub hours: Option<Hours>,
    /// This condition does not hold.
    #[serde(default)]
    pub not: Option<Box<Self>>,
    /// At least one of these conditions holds.
    #[serde(default)]
    pub any: Vec<Self>,
    /// Values that match a pattern. TOML and JSON files cannot express this; Envoy's files can.
    #[serde(skip)]
    pub wildcards: Vec<Wildcard>,
}

/// What is expected of a header, a cookie, a parameter or a claim: a text that it equals, a list of texts of
/// which it equals one, `true` if it has to be there, `false` if it must not be.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub enum Expected {
    /// It is there, or it is not.
    Present(bool),
    /// It is there, and equals this.
    Equal(String),
    /// It is there, and equals one of these.
    Any(Vec<String>),
}

/// Hours of the day and days of the week.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Hours {
    /// From when to when, such as `["22:00", "06:00"]`; the end does not belong to it. An end before the
    /// beginning is on the next day.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(equal = 2)))]
    pub between: Option<Vec<String>>,
    /// On which days, those on which it begins: every day, unless said otherwise.
    #[serde(default)]
    pub on: Vec<Weekday>,
    /// The IANA time zone, instead of the document's `time_zone`.
    #[serde(default)]
    pub zone: Option<String>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "days need no explanation")]
pub enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl<'de> Shaped<'de> for Expected {
    const EXPECTED: &'static str = "a text, a list of texts, or `true` for being there";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Equal(text.to_owned()))
    }

    fn truth<E: Error>(truth: bool) -> Result<Self, E> {
        Ok(Self::Present(truth))
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Self::Any)
    }
}

deserialize_shaped!(Expected);

deserialize_tables! {
    Condition: "a condition, a table such as { method = [\"POST\"] }",
    Hours: "a table such as { between = [\"22:00\", \"06:00\"] }"
}
