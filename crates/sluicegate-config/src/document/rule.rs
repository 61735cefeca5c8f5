#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::shaped::deserialize_tables;
use super::{Case, Condition, Cost, Key, Limit, Reject, Settle};

/// Limits on a key: whose budget a request is charged to, how much there is of it, and when.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Rule {
    /// What the rule is called, in header fields, metrics and stores: a name of its own, of at most 31
    /// printable ASCII characters. Its limits are named after it, where they have no names of their own: all
    /// the same if they have one period in all tiers and cases, else after their periods too: `name/minute`,
    /// `name/30 days`. What is spent is kept under rule and period, so their order makes no difference, a limit
    /// that joins another changes nothing for it, and a limit that gets another period begins afresh. A rule
    /// that is renamed forgets what was spent.
    pub name: String,
    /// Whose budget it is.
    pub key: Key,
    /// The limits, all of which hold at once. With `tiers` or `cases`, these hold where no tier and no
    /// case says otherwise.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Chooses the limits by tier or by customer.
    #[serde(default)]
    pub tiers: Option<Tiers>,
    /// Other limits in other cases: the first that holds replaces `limits`.
    #[serde(default)]
    pub cases: Vec<Case>,
    /// To which requests the rule applies: all, unless said otherwise.
    #[serde(default)]
    pub when: Option<Condition>,
    /// What a request costs: 1, unless said otherwise.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// Corrects the cost to what the response says that it was.
    #[serde(default)]
    pub settle: Option<Settle>,
    /// Settles when the response's body has ended, failed or been dropped, instead of when its head is there.
    /// Then `settle` finds a header in the trailers too. Needs `settle` or `count_if`.
    #[serde(default)]
    pub settle_at_end: bool,
    /// The most that one request can be settled to, whatever its response says: unless set, ten times the larger
    /// of the cost and the limit. Needs `settle` or `count_if`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub settle_at_most: Option<u64>,
    /// Counts a request only if its response has one of these statuses, such as `[401, 403]` for failed
    /// logins; all others are given back what they were charged.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(range(min = 100, max = 999))))]
    pub count_if: Vec<u16>,
    /// What happens to a request that this rule refuses: `block`, unless said otherwise.
    #[serde(default)]
    pub reject: Option<Reject>,
}

/// How a rule finds the tier of a request: by what names the tier (`by`), or by what names the customer
/// (`customer`), whose tier stands under `customers`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Tiers {
    /// Where the name of the tier is read from: `{ claim = ".." }` or `{ const = ".." }`. What a client
    /// may write itself, a header for one, cannot be used.
    #[serde(default)]
    pub by: Option<Key>,
    /// Where the name of the customer is read from, in the same ways.
    #[serde(default)]
    pub customer: Option<Key>,
    /// The tier of everybody whose tier or customer is not known.
    pub default: String,
}

deserialize_tables! {
    Rule: "a rule, a table with `name`, `key` and `limits`",
    Tiers: "a table such as { by = { claim = \"plan\" }, default = \"free\" }"
}
