//! What may be written in a file of cases.

use std::collections::BTreeMap;
use std::fmt;

#[cfg(test)]
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Test cases for rules of sluicegate.
///
/// Each case sends requests at given times to the rules, which have counted nothing before.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(title = "Test cases for rules of sluicegate"))]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The schema for editors. It has no effect here.
    #[serde(rename = "$schema")]
    #[expect(dead_code, reason = "only editors read it")]
    schema: Option<String>,
    /// Clients by name, which requests come from.
    #[serde(default)]
    pub(super) clients: BTreeMap<String, Client>,
    /// The cases.
    pub(super) cases: Vec<Case>,
}

/// What all requests of a client have in common.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    /// The address.
    pub(super) ip: Option<String>,
    /// Header fields.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// What the authentication of the service finds out about the client, such as its plan.
    #[serde(default)]
    pub(super) claims: BTreeMap<String, String>,
}

/// Requests, and what has to become of them.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// What the case shows, in a sentence.
    pub(super) name: String,
    /// When it begins, such as `2026-03-02T09:00:00+01:00`, for rules with `hours`. The default is midnight of a Saturday,
    /// `2000-01-01T00:00:00Z`.
    pub(super) start: Option<String>,
    /// The requests. They come in the order of their times, and at one time in the order of the file.
    pub(super) requests: Vec<Request>,
    /// What is expected of all requests of the case together.
    pub(super) expect: Option<Expect>,
}

/// A request, or the same request several times.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// When it comes, from the beginning of the case, such as `90 seconds`. The default is at once.
    pub(super) at: Option<String>,
    /// How often it is sent. The default is once.
    #[cfg_attr(test, schemars(range(min = 1, max = 10_000_000)))]
    pub(super) times: Option<u64>,
    /// The time between two of them, such as `1 second`. Without it, all come at the same time.
    pub(super) every: Option<String>,
    /// The client that it comes from, by its name in `clients`, or several clients, each of which sends it.
    pub(super) client: Option<Names>,
    /// The method. The default is `GET`.
    pub(super) method: Option<String>,
    /// The path as the client sends it, with a query if there is one. The default is `/`.
    pub(super) path: Option<String>,
    /// The host that it is for.
    pub(super) host: Option<String>,
    /// The pattern of the route that it matches, such as `/users/{id}`.
    pub(super) route: Option<String>,
    /// The address that it comes from, instead of that of the client.
    pub(super) ip: Option<String>,
    /// Header fields, beside those of the client.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// What the authentication of the service finds out, beside what it knows of the client.
    #[serde(default)]
    pub(super) claims: BTreeMap<String, String>,
    /// The tokens of a language model that it may use.
    pub(super) tokens: Option<ExpectedTokens>,
    /// What the service answers if the request is served.
    #[serde(default)]
    pub(super) response: Response,
    /// What has to become of it. If it is sent several times, that holds for each, and numbers are of all together.
    pub(super) expect: Option<Expect>,
}

/// What the service answers.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Response {
    /// The status. The default is 200.
    #[cfg_attr(test, schemars(range(min = 200, max = 599)))]
    pub(super) status: Option<u16>,
    /// Header fields.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// How long it takes until the response has ended, such as `200 ms`. The default is no time.
    pub(super) takes: Option<String>,
    /// The cost that the service reports, for `settle = "response"`.
    pub(super) cost: Option<u64>,
    /// The tokens of a language model that the answer has used.
    pub(super) tokens: Option<UsedTokens>,
}

/// Tokens that a request may use.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedTokens {
    /// Of the request.
    #[serde(default)]
    pub(super) input: u64,
    /// The most that the answer may have.
    #[serde(default)]
    pub(super) output: u64,
}

/// Tokens that a request has used.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct UsedTokens {
    /// Of the request, including `cached`.
    #[serde(default)]
    pub(super) input: u64,
    /// Of the answer.
    #[serde(default)]
    pub(super) output: u64,
    /// The part of `input` that the model read from its cache.
    #[serde(default)]
    pub(super) cached: u64,
}

/// What has to become of requests: an outcome, or a table.
#[derive(Debug)]
#[cfg_attr(test, derive(JsonSchema), schemars(untagged))]
pub(super) enum Expect {
    /// The outcome of each.
    Outcome(Outcome),
    /// More than the outcome.
    Table(Box<ExpectTable>),
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// It is served, perhaps after a wait.
    Served,
    /// It is served with a mark, so that the service serves less.
    Degraded,
    /// It is refused: 429, or 413 or 422 if it costs more than a limit ever admits.
    Refused,
    /// It is sent elsewhere.
    Redirected,
    /// It lacks its key, and is answered with 400.
    Incomplete,
    /// It cannot be decided, because the service is not set up for the rules, and is answered with 500.
    Failed,
}

/// What has to become of requests. At least one part is needed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectTable {
    /// The outcome of each.
    pub(super) outcome: Option<Outcome>,
    /// The limits that each is refused by, and no others. `[]` for none.
    pub(super) by: Option<Names>,
    /// The status that each client gets.
    pub(super) status: Option<u16>,
    /// The whole seconds in `Retry-After` that each client gets.
    pub(super) retry_after: Option<u64>,
    /// How long each that is served waits, such as `250 ms`, or `0 s`.
    pub(super) wait: Option<String>,
    /// How long each that is served waits at most.
    pub(super) wait_at_most: Option<String>,
    /// Header fields that each client gets, with their values.
    #[serde(default)]
    pub(super) fields: BTreeMap<String, String>,
    /// How many are served.
    pub(super) served: Option<u64>,
    /// How many are served less.
    pub(super) degraded: Option<u64>,
    /// How many are refused.
    pub(super) refused: Option<u64>,
    /// How many are sent elsewhere.
    pub(super) redirected: Option<u64>,
    /// How many are answered with 400.
    pub(super) incomplete: Option<u64>,
    /// How many are answered with 500.
    pub(super) failed: Option<u64>,
    /// How many each of these limits refuses.
    #[serde(default)]
    pub(super) refused_by: BTreeMap<String, u64>,
    /// How many each of these limits would refuse, if it were not on trial.
    #[serde(default)]
    pub(super) shadowed_by: BTreeMap<String, u64>,
}

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = Expect;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "an outcome such as \"served\", or a table such as { served = 5, refused = 1 }",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Expect, E> {
                Outcome::deserialize(StrDeserializer::new(text)).map(Expect::Outcome)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Expect, A::Error> {
                let table = ExpectTable::deserialize(MapAccessDeserializer::new(table));
                table.map(|table| Expect::Table(Box::new(table)))
            }
        }

        from.deserialize_any(Forms)
    }
}

/// A name, or a list of names.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(test, derive(JsonSchema), schemars(untagged))]
pub(super) enum Names {
    /// One name.
    One(String),
    /// Several names.
    Several(Vec<String>),
}

impl Names {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, or a list of names")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Names, E> {
                Ok(Names::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Names, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Names::Several)
            }
        }

        from.deserialize_any(Forms)
    }
}
