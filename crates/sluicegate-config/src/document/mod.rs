//! The contents of a policy file: the types that TOML and JSON are read into.
//!
//! A document is not checked for meaning: a limit is still a text, and a rule may name a tier that does not
//! exist. [`Policies::new`](crate::Policies::new) reports such errors.
//!
//! Public is what a reader of another [format](crate::Format) writes into a document. The file format gets new keys,
//! so nobody outside can build these types field by field, or match all of their variants. The JSON Schema, the file
//! `schema.json` of this crate, describes everything that a file can contain.

mod amount;
mod case;
mod condition;
mod cost;
mod dialect;
mod hold_until;
mod key;
mod limit;
mod proxy;
mod reject;
mod rule;
mod shaped;
mod texts;
mod throttle;
mod throttle_parts;
mod tier;
mod wildcard;

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::amount::Amount;
pub(crate) use self::case::{Case, Load};
pub use self::condition::{Condition, Expected};
pub(crate) use self::condition::{Hours, Weekday};
pub(crate) use self::cost::{Cost, CostTable, Settle, SettleTable, Tokens};
pub(crate) use self::dialect::{Api, Dialect};
pub(crate) use self::hold_until::HoldUntil;
pub use self::key::Key;
pub(crate) use self::limit::{Ban, Limit, LimitTable, WhenFull};
pub(crate) use self::proxy::{Listen, Upstream, UpstreamTls};
pub(crate) use self::reject::{Redirect, Reject};
pub use self::rule::Rule;
pub(crate) use self::rule::Tiers;
pub use self::texts::Texts;
pub(crate) use self::throttle::Throttle;
#[cfg(feature = "throttle")]
pub(crate) use self::throttle_parts::{
    Adaptive, ClassCase, ClassHeader, Deadline, Degrade, Partition, QueueBound, QueueCost,
    ReportedCost, WhenShed,
};
pub(crate) use self::tier::Tier;
pub use self::wildcard::Wildcard;

use self::shaped::deserialize_tables;
use crate::source::SourceMap;

/// Rate limiting policies for sluicegate.
///
/// A request is charged by every rule whose condition holds. If one of them refuses it, it is charged by none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
#[cfg_attr(feature = "schema", schemars(title = "Policies of sluicegate"))]
pub struct Document {
    /// The schema for editors. It has no effect here.
    #[serde(default, rename = "$schema")]
    pub schema: Option<String>,
    /// The IANA time zone of `hours` without a zone of their own, such as `Europe/Berlin`. The default is `UTC`.
    #[serde(default)]
    pub(crate) time_zone: Option<String>,
    /// The proxies in front of the service. Without them, the client's address (`ip`) is the peer of the
    /// connection, and forwarding headers are ignored.
    #[serde(default)]
    pub proxies: Option<Proxies>,
    /// The prefixes of NAT64 translators (RFC 6052), such as `64:ff9b::/96`. A client's address with such a
    /// prefix counts as the IPv4 address inside it.
    #[serde(default)]
    pub(crate) nat64: Option<Texts>,
    /// The GeoIP database, for the keys and conditions `country` and `region`.
    #[serde(default)]
    pub(crate) geoip: Option<Geoip>,
    /// Until when a served request holds its place in limits of concurrency (`concurrent 5`): until the
    /// response's body has ended (`end`, the default), or until its head is there (`head`). A change takes
    /// effect when the service starts again.
    #[serde(default)]
    pub(crate) hold_until: Option<HoldUntil>,
    /// Header fields and errors as OpenAI's or Anthropic's API has them. A change takes effect when the service
    /// starts again.
    #[serde(default)]
    pub(crate) dialect: Option<Dialect>,
    /// Overload protection: a queue in front of the service. Needs the feature `throttle`.
    #[serde(default)]
    pub(crate) throttle: Option<Throttle>,
    /// Where `sluicegate proxy` listens. It has no effect in other programs.
    #[serde(default)]
    pub(crate) listen: Option<Listen>,
    /// The application behind `sluicegate proxy`. It has no effect in other programs.
    #[serde(default)]
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
    #[serde(default)]
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

impl Proxies {
    /// These proxies, which write `x-forwarded-for`.
    pub fn new(trusted: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { trusted: trusted.into_iter().map(Into::into).collect(), header: None }
    }
}

deserialize_tables! {
    Document: "a table of policies",
    Proxies: "a table such as { trusted = [\"10.0.0.0/8\"] }",
    Geoip: "a table such as { database = \"countries.mmdb\" }"
}
