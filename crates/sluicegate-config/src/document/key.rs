#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess};

use super::shape::{Shaped, deserialize_shaped};
use crate::source::DocumentPath;

/// The key of a budget: a name such as `ip`, a table such as `{ claim = "customer" }`, or a list of keys that
/// form one key together.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Key {
    /// The client's address. An IPv6 address is cut to its first 64 bits, the smallest network that a subscriber
    /// usually gets.
    Ip,
    /// The pattern of the matched route, such as `/users/{id}`.
    Route,
    /// The method, such as `GET`.
    Method,
    /// The path, as the client sent it. Prefer `route`: a client can spell one path in many ways.
    Path,
    /// The host that the request is for, without the port.
    Host,
    /// One budget for all requests.
    Global,
    /// The country of the client's address. Needs `geoip`.
    Country,
    /// The region of the client's address. Needs `geoip`, with a database of cities.
    Region,
    /// The value of this header. The client chooses it: unless something else rejects invented values, each of
    /// them has a fresh budget.
    Header(String),
    /// The value of this cookie. The client chooses it, like a header.
    Cookie(String),
    /// The value of this query parameter. The client chooses it, like a header.
    Query(String),
    /// The value of this claim, which the service's authentication has verified. A client cannot invent it.
    Claim(String),
    /// A constant: the same text for every request.
    Const(String),
    /// The first of two to four keys that is present.
    First(#[cfg_attr(feature = "schema", schemars(length(min = 2, max = 4)))] Vec<Self>),
    /// This key, if it is present. A request without it is not charged by the rule.
    Optional(Box<Self>),
    /// One to four keys that form one key together.
    #[cfg_attr(feature = "schema", schemars(untagged))]
    All(#[cfg_attr(feature = "schema", schemars(length(min = 1, max = 4)))] Vec<Self>),
}

impl Key {
    /// Calls `each` with this key, and with every key inside it.
    pub(crate) fn each(
        &self,
        path: &DocumentPath<'_>,
        each: &mut dyn FnMut(&Self, &DocumentPath<'_>),
    ) {
        each(self, path);
        let (keys, path) = match self {
            Self::Optional(key) => return key.each(&path.name("optional"), each),
            Self::First(keys) => (keys, path.name("first")),
            Self::All(keys) => (keys, *path),
            Self::Ip
            | Self::Route
            | Self::Method
            | Self::Path
            | Self::Host
            | Self::Global
            | Self::Country
            | Self::Region
            | Self::Header(_)
            | Self::Cookie(_)
            | Self::Query(_)
            | Self::Claim(_)
            | Self::Const(_) => return,
        };
        keys.iter().enumerate().for_each(|(i, key)| key.each(&path.index(i), each));
    }
}

/// Keys that are written as a name alone, and how to write those that have a name or a value.
const NAMES: &[&str] = &[
    "ip",
    "route",
    "method",
    "path",
    "host",
    "global",
    "country",
    "region",
    "{ header = \"..\" }",
    "{ cookie = \"..\" }",
    "{ query = \"..\" }",
    "{ claim = \"..\" }",
];

const ONE: &str = "a key has one source: put several keys that form one key in a list `[..]`";

/// Sources of a key that have a name or a value.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Source {
    Header,
    Cookie,
    Query,
    Claim,
    Const,
    First,
    Optional,
}

impl<'de> Shaped<'de> for Key {
    const EXPECTED: &'static str =
        "a key such as \"ip\", { header = \"x-api-key\" } or [\"ip\", \"route\"]";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(match text {
            "ip" => Self::Ip,
            "route" => Self::Route,
            "method" => Self::Method,
            "path" => Self::Path,
            "host" => Self::Host,
            "global" => Self::Global,
            "country" => Self::Country,
            "region" => Self::Region,
            _ => return Err(E::unknown_variant(text, NAMES)),
        })
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Self::All)
    }

    fn table<A: MapAccess<'de>>(mut table: A) -> Result<Self, A::Error> {
        let Some(source) = table.next_key()? else {
            return Err(A::Error::custom(format_args!(
                "there is no key, expected {}",
                Self::EXPECTED
            )));
        };
        let key = match source {
            Source::Header => Self::Header(table.next_value()?),
            Source::Cookie => Self::Cookie(table.next_value()?),
            Source::Query => Self::Query(table.next_value()?),
            Source::Claim => Self::Claim(table.next_value()?),
            Source::Const => Self::Const(table.next_value()?),
            Source::First => Self::First(table.next_value()?),
            Source::Optional => Self::Optional(table.next_value()?),
        };
        match table.next_key::<Source>()? {
            None => Ok(key),
            Some(_) => Err(A::Error::custom(ONE)),
        }
    }
}

deserialize_shaped!(Key);
