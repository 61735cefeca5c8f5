//! What a policy file says: the types that TOML and JSON are read into.
//!
//! A document says what was written, not what it means: a limit is still a text, and a tier may be named
//! that nobody defined. [`Policies::new`](crate::Policies::new) finds that out.

mod amount;
mod case;
mod condition;
mod cost;
mod hold_until;
mod key;
mod limit;
mod reject;
mod rule;
mod shaped;
mod texts;
mod tier;
mod wildcard;

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::amount::Amount;
pub use self::case::{Case, Room};
pub use self::condition::{Condition, Expected, Hours, Weekday};
pub use self::cost::{Cost, CostTable, Settle, SettleTable};
pub use self::hold_until::HoldUntil;
pub use self::key::Key;
pub use self::limit::{Ban, BanTable, Limit, LimitTable, WhenFull};
pub use self::reject::{Redirect, Reject};
pub use self::rule::{Rule, Tiers};
pub use self::texts::Texts;
pub use self::tier::Tier;
pub use self::wildcard::Wildcard;

use self::shaped::deserialize_tables;
use crate::source::SourceMap;

/// Rate limiting policies for sluicegate: who may spend how much in how much time.
///
/// Every rule whose condition holds for a request is charged; a request that one of them refuses is
/// charged to none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
#[cfg_attr(feature = "schema", schemars(title = "Policies of sluicegate"))]
pub struct Document {
    /// The schema that editors check the file by. It changes nothing here.
    #[serde(default, rename = "$schema")]
    pub schema: Option<String>,
    /// The IANA time zone that `hours` are told in where they name none, such as `Europe/Berlin`.
    /// `UTC` unless said otherwise.
    #[serde(default)]
    pub time_zone: Option<String>,
    /// Which proxies stand in front of the service. Without them, a client's address (`ip`) is that
    /// of the other end of the connection, and no forwarding header is believed.
    #[serde(default)]
    pub proxies: Option<Proxies>,
    /// The prefixes of translators between IPv4 and IPv6 (NAT64, RFC 6052), such as `64:ff9b::/96`. A
    /// client's address with such a prefix is the IPv4 address within.
    #[serde(default)]
    pub nat64: Option<Texts>,
    /// The GeoIP database, for the keys and conditions `country` and `region`.
    #[serde(default)]
    pub geoip: Option<Geoip>,
    /// Until when a served request holds its place in limits of concurrency (`concurrent 5`): until the
    /// response's body has ended (`end`, the default), or until its head is there (`head`). A change takes
    /// effect when the service starts again.
    #[serde(default)]
    pub hold_until: Option<HoldUntil>,
    /// Limits by the name of a tier (a plan, a class of customers), for rules that choose by tier.
    #[serde(default)]
    pub tiers: BTreeMap<String, Tier>,
    /// The tier of each customer who has one of their own, for rules that choose by customer.
    #[serde(default)]
    pub customers: BTreeMap<String, String>,
    /// The rules. Each that applies to a request is charged.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Where all of this stands in the text that it was read from.
    #[serde(skip)]
    pub source: SourceMap,
}

/// The proxies in front of the service, and the header in which they tell the client's address.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Proxies {
    /// Addresses and networks of the proxies, such as `10.0.0.0/8` or `::1`. Nobody else's forwarding
    /// header is believed. Each of them has to add to that header, or to replace it.
    pub trusted: Vec<String>,
    /// The one header that they write: `x-forwarded-for` unless said otherwise. `forwarded` is read as
    /// RFC 7239 has it, every other one as addresses separated by commas.
    #[serde(default)]
    pub header: Option<String>,
}

/// The database that knows the country and region of an address.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Geoip {
    /// A MaxMind database file (`.mmdb`) with countries or cities. A path that is not absolute is taken
    /// from the directory of this file.
    pub database: String,
}

deserialize_tables! {
    Document: "a table of policies",
    Proxies: "a table such as { trusted = [\"10.0.0.0/8\"] }",
    Geoip: "a table such as { database = \"countries.mmdb\" }"
}
