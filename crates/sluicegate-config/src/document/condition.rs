use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess};

use super::shaped::{Shaped, deserialize_shaped, deserialize_tables};
use super::{Texts, Wildcard};

/// A condition on requests. All parts that are set must hold.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Condition {
    /// The method is one of these, such as `["POST", "PUT"]`. `GET` is also `HEAD`.
    #[serde(default)]
    pub method: Option<Texts>,
    /// The path matches a pattern, such as `/login`, `/users/{id}` or `/api/*`. Encoded characters, repeated slashes
    /// and dots do not get around it. Case counts: an application that ignores it needs stricter routes.
    #[serde(default)]
    pub path: Option<Texts>,
    /// The matched route has this pattern, such as `/users/{id}`.
    #[serde(default)]
    pub route: Option<Texts>,
    /// The host is this one, or matches this pattern, such as `api.example.com` or `*.example.com`.
    #[serde(default)]
    pub host: Option<Texts>,
    /// Headers by name, with the expected value.
    #[serde(default)]
    pub header: BTreeMap<String, Expected>,
    /// Cookies by name, with the expected value.
    #[serde(default)]
    pub cookie: BTreeMap<String, Expected>,
    /// Query parameters by name, with the expected value.
    #[serde(default)]
    pub query: BTreeMap<String, Expected>,
    /// Claims by name, with the expected value.
    #[serde(default)]
    pub claim: BTreeMap<String, Expected>,
    /// The client's address is in one of these networks, such as `["10.0.0.0/8", "2001:db8::/32"]`.
    #[serde(default)]
    pub network: Option<Texts>,
    /// The client's address is in one of these countries, such as `["DE", "AT"]`. Needs
    /// `geoip`.
    #[serde(default)]
    pub country: Option<Texts>,
    /// The client's address is in one of these regions, such as `["DE-BY"]`. Needs `geoip`.
    #[serde(default)]
    pub region: Option<Texts>,
    /// The current time is within these hours.
    #[serde(default)]
    pub(crate) hours: Option<Hours>,
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

/// The expected value of a header, cookie, query parameter or claim: a text, a list of alternatives, `true` if
/// it must be present, `false` if it must be absent.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
#[non_exhaustive]
pub enum Expected {
    /// It is present, or absent.
    Present(bool),
    /// It has this value.
    Equal(String),
    /// It has one of these values.
    Any(Vec<String>),
}

/// Hours of the day and days of the week.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Hours {
    /// Start and end, such as `["22:00", "06:00"]`. The end itself is not included. An end before the start is on
    /// the next day.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(equal = 2)))]
    pub(crate) between: Option<Vec<String>>,
    /// The days on which the interval starts. The default is every day.
    #[serde(default)]
    pub(crate) on: Vec<Weekday>,
    /// The IANA time zone, instead of the document's `time_zone`.
    #[serde(default)]
    pub(crate) zone: Option<String>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl<'de> Shaped<'de> for Expected {
    const EXPECTED: &'static str = "a text, a list of texts, or `true` if it must be present";

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
