use std::collections::BTreeMap;

use memchr::memmem;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess};

use super::Key;
use super::shape::{Shaped, Texts, deserialize_shaped, deserialize_tables};
use crate::source::DocumentPath;

/// A condition on requests. All parts that are set must hold.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Condition {
    /// The method is one of these, such as `["POST", "PUT"]`. `GET` is also `HEAD`.
    pub method: Option<Texts>,
    /// The path matches a pattern, such as `/login`, `/users/{id}` or `/api/*`. Encoded characters, repeated slashes
    /// and dots do not get around it. Case counts: an application that ignores it needs stricter routes.
    pub path: Option<Texts>,
    /// The matched route has this pattern, such as `/users/{id}`.
    pub route: Option<Texts>,
    /// The host is this one, or matches this pattern, such as `api.example.com` or `*.example.com`.
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
    pub network: Option<Texts>,
    /// The client's address is in one of these countries, such as `["DE", "AT"]`. Needs
    /// `geoip`.
    pub country: Option<Texts>,
    /// The client's address is in one of these regions, such as `["DE-BY"]`. Needs `geoip`.
    pub region: Option<Texts>,
    /// The current time is within these hours.
    pub(crate) hours: Option<Hours>,
    /// This condition does not hold.
    pub not: Option<Box<Self>>,
    /// At least one of these conditions holds.
    #[serde(default)]
    pub any: Vec<Self>,
    /// Values that match a pattern. TOML and JSON files cannot express this; Envoy's files can.
    #[serde(skip)]
    pub(crate) wildcards: Vec<Wildcard>,
}

impl Condition {
    /// Calls `each` with this condition, and with every condition inside it.
    pub(crate) fn each(
        &self,
        path: &DocumentPath<'_>,
        each: &mut dyn FnMut(&Self, &DocumentPath<'_>),
    ) {
        each(self, path);
        if let Some(not) = &self.not {
            not.each(&path.name("not"), each);
        }
        let list = path.name("any");
        self.any.iter().enumerate().for_each(|(i, any)| any.each(&list.index(i), each));
    }
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
    #[cfg_attr(feature = "schema", schemars(length(equal = 2)))]
    pub(crate) between: Option<Vec<String>>,
    /// The days on which the interval starts. The default is every day.
    #[serde(default)]
    pub(crate) on: Vec<Weekday>,
    /// The IANA time zone, instead of the document's `time_zone`.
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

/// A pattern that the value of a key must match, as in Envoy's descriptors: `*` matches any text, also none.
///
/// TOML and JSON files cannot express this. They have `header`, `path` and the other conditions instead.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wildcard {
    /// The key: a header, a cookie, a query parameter, a claim, the host, the method, the path or the route.
    pub(crate) key: Key,
    /// The patterns. One of them must match.
    pub(crate) patterns: Vec<String>,
    /// If a request has several values for the key, whether all of them must match, or only one. It is not
    /// known which of them a handler reads.
    pub(crate) every: bool,
}

impl Wildcard {
    /// The value of `key` matches one of `patterns`. If a request has several values for the key, one of them must match,
    /// or `every` one: it is not known which of them a handler reads.
    #[cfg(feature = "envoy")]
    pub(crate) fn new(key: Key, patterns: Vec<String>, every: bool) -> Self {
        Self { key, patterns, every }
    }

    /// Whether `text`, which may be any bytes, matches `pattern`.
    pub(crate) fn matches(pattern: &str, text: impl AsRef<[u8]>) -> bool {
        let (text, mut parts) = (text.as_ref(), pattern.split('*').map(str::as_bytes));
        let first = parts.next().unwrap_or_default();
        let Some(last) = parts.next_back() else { return text == first };
        let rest = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
        let Some(mut rest) = rest else { return false };
        parts.all(|part| match memmem::find(rest, part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }
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

#[cfg(test)]
mod tests {
    use super::Wildcard;

    fn matches(pattern: &str, text: &str) -> bool {
        Wildcard::matches(pattern, text)
    }

    #[test]
    fn a_star_stands_for_any_text_and_for_none() {
        assert!(matches("foo*", "foo"));
        assert!(matches("foo*", "food"));
        assert!(matches("*", ""));
        assert!(matches("*d", "food"));
        assert!(!matches("foo*", "afoo"));
        assert!(!matches("foo", "food"));
    }

    #[test]
    fn a_star_stands_for_bytes_that_are_no_text() {
        assert!(Wildcard::matches("/login*", b"/login\xff"));
        assert!(Wildcard::matches("*ż*b", b"\xc5\xc5\xbc\xffb"));
        assert!(!Wildcard::matches("*\u{fffd}*", b"a\xffb"));
    }

    #[test]
    fn stars_may_stand_in_the_middle_and_several_times() {
        assert!(matches("/api/*/resource/*/action", "/api/v1/resource/123/action"));
        assert!(!matches("/api/*/action", "/api/123/other"));
        assert!(matches("bar*b", "barb"));
        assert!(matches("a**b", "ab"));
        assert!(matches("foo*bar*baz", "foobarbaz"));
        assert!(!matches("foo*bar*baz", "foobabaz"));
    }

    #[test]
    fn no_character_is_used_twice() {
        assert!(!matches("bar*rb", "barb"));
        assert!(!matches("ab*ba*ab", "abab"));
        assert!(!matches("a*a", "a"));
    }
}
