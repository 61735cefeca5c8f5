//! The contents of a policy file: the types that TOML and JSON are read into.
//!
//! A document is not checked for meaning: a limit is still a text, and a rule may name a tier that does not
//! exist. [`Policies::new`](crate::Policies::new) reports such errors.
//!
//! Public is what a reader of another [format](crate::Format) writes into a document. The file format gets new keys,
//! so nobody outside can build these types field by field, or match all of their variants. The JSON Schema, the file
//! `schema.json` of this crate, describes everything that a file can contain.

mod condition;
mod cost;
mod key;
mod limit;
mod proxy;
mod rule;
mod shape;
mod throttle;

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::condition::{Condition, Expected};
pub(crate) use self::condition::{Hours, Weekday, Wildcard};
pub(crate) use self::cost::{Cost, CostTable, Settle, SettleTable, Tokens};
pub use self::key::Key;
pub(crate) use self::limit::{Ban, Limit, LimitTable, WhenFull};
pub(crate) use self::proxy::{Listen, Upstream, UpstreamTls};
pub use self::rule::Rule;
pub(crate) use self::rule::{Case, Load, Redirect, Reject, Tiers};
pub(crate) use self::shape::Amount;
pub use self::shape::Texts;
pub(crate) use self::throttle::Throttle;
#[cfg(feature = "throttle")]
pub(crate) use self::throttle::{
    Adaptive, ClassCase, ClassHeader, Deadline, Degrade, Partition, QueueBound, QueueCost,
    ReportedCost, WhenShed,
};

use self::shape::deserialize_tables;
use crate::source::{Diagnostic, DocumentPath, SourceMap};

/// Rate limiting policies for sluicegate.
///
/// A request is charged by every rule whose condition holds. If one of them refuses it, it is charged by none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
#[cfg_attr(feature = "schema", schemars(title = "Policies of sluicegate"))]
pub struct Document {
    /// The schema for editors. It has no effect here.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// The IANA time zone of `hours` without a zone of their own, such as `Europe/Berlin`. The default is `UTC`.
    pub(crate) time_zone: Option<String>,
    /// The proxies in front of the service. Without them, the client's address (`ip`) is the peer of the
    /// connection, and forwarding headers are ignored.
    pub proxies: Option<Proxies>,
    /// The prefixes of NAT64 translators (RFC 6052), such as `64:ff9b::/96`. A client's address with such a
    /// prefix counts as the IPv4 address inside it.
    pub(crate) nat64: Option<Texts>,
    /// The GeoIP database, for the keys and conditions `country` and `region`.
    pub(crate) geoip: Option<Geoip>,
    /// Until when a served request holds its place in limits of concurrency (`concurrent 5`): until the
    /// response's body has ended (`end`, the default), or until its head is there (`head`). A change takes
    /// effect when the service starts again.
    pub(crate) hold_until: Option<HoldUntil>,
    /// Header fields and errors as OpenAI's or Anthropic's API has them. A change takes effect when the service
    /// starts again.
    pub(crate) dialect: Option<Dialect>,
    /// Overload protection: a queue in front of the service. Needs the feature `throttle`.
    pub(crate) throttle: Option<Throttle>,
    /// Where `sluicegate proxy` listens. It has no effect in other programs.
    pub(crate) listen: Option<Listen>,
    /// The application behind `sluicegate proxy`. It has no effect in other programs.
    pub(crate) upstream: Option<Upstream>,
    /// Tiers by name, such as plans or classes of customers, for rules with `tiers`.
    #[serde(default)]
    pub(crate) tiers: BTreeMap<String, Tier>,
    /// The tier of each customer, for rules with `tiers = { customer = .. }`.
    #[serde(default)]
    pub(crate) customers: BTreeMap<String, String>,
    /// The rules. A request is charged by every rule that applies to it.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// What a [format](crate::Format) of your own reads beside rules, in words by name. A reload reports what changed.
    #[serde(skip)]
    pub others: BTreeMap<String, String>,
    /// Where the values are in the text of the file.
    #[serde(skip)]
    pub source: SourceMap,
}

/// A diagnostic about a value of `document`, or of policies that were made in code.
pub(crate) fn located(
    document: Option<&Document>,
    path: &DocumentPath<'_>,
    message: &str,
) -> Diagnostic {
    match document {
        Some(document) => document.source.problem(path, message),
        None => Diagnostic::new(path.to_string(), message),
    }
}

/// The proxies in front of the service, and the header in which they pass the client's address on.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
#[non_exhaustive]
pub struct Proxies {
    /// Addresses and networks of the proxies, such as `10.0.0.0/8` or `::1`. The header is trusted only from
    /// them. Each proxy must append to the header or replace it.
    pub trusted: Vec<String>,
    /// The header that the proxies write. The default is `x-forwarded-for`. `forwarded` is read by RFC 7239,
    /// every other header as addresses separated by commas.
    pub header: Option<String>,
}

/// The database that knows the country and region of an address.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Geoip {
    /// A MaxMind database file (`.mmdb`) of countries or cities. A relative path starts at the directory of
    /// the policy file.
    pub(crate) database: String,
}

/// One tier: `limits`, or `unlimited = true`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Tier {
    /// The limits. All of them apply.
    #[serde(default)]
    pub(crate) limits: Vec<Limit>,
    /// Whether this tier has no limits. Its use is logged.
    #[serde(default)]
    pub(crate) unlimited: bool,
}

/// Until when a served request holds its place in limits of concurrency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum HoldUntil {
    /// Until the head of the response is there.
    Head,
    /// Until the response's body has ended, failed or been dropped.
    #[default]
    End,
}

/// Header fields and errors as an API of language models has them, so that its clients understand the service. A change
/// takes effect when the service starts again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Dialect {
    /// Whose API it is.
    pub(crate) api: Api,
    /// The names of rules, or of limits, that count requests.
    pub(crate) requests: Option<Texts>,
    /// The names of those that count tokens of input and output.
    pub(crate) tokens: Option<Texts>,
    /// The names of those that count tokens of input. OpenAI's API has no fields for them.
    pub(crate) input_tokens: Option<Texts>,
    /// The names of those that count tokens of output. OpenAI's API has no fields for them.
    pub(crate) output_tokens: Option<Texts>,
}

/// An API of language models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Api {
    /// OpenAI's, which many others have too: `x-ratelimit-remaining-tokens`.
    OpenAi,
    /// Anthropic's: `anthropic-ratelimit-tokens-remaining`.
    Anthropic,
}

/// The JSON Schema of a document, for editors that check a file while it is written.
///
/// It is the same as `schema.json` beside this crate's sources.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Document).to_value()
}

impl Proxies {
    /// These proxies, which write `x-forwarded-for`.
    pub fn new(trusted: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { trusted: trusted.into_iter().map(Into::into).collect(), header: None }
    }
}

deserialize_tables! {
    Document: "a table of policies",
    Proxies: "a table such as { trusted = [\"10.0.0.0/8\"] }",
    Geoip: "a table such as { database = \"countries.mmdb\" }",
    Tier: "a table such as { limits = [\"5/second\"] } or { unlimited = true }",
    Dialect: "a table such as { api = \"openai\", requests = \"requests\", tokens = \"tokens\" }"
}
