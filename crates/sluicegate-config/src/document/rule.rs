#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

use super::shaped::deserialize_tables;
use super::{Case, Condition, Cost, Key, Limit, Reject, Settle};

/// A rule: limits, the key whose budget they count, and the requests that they apply to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Rule {
    /// The name of the rule in header fields, metrics and stores: unique, at most 31 printable ASCII characters.
    /// Limits without a name are named after the rule, with their period if the rule has several:
    /// `name/minute`, `name/30 days`. What was spent is stored by rule and period. So limits can be reordered and
    /// added without losing it; a limit with a new period, and a rule with a new name, start from zero.
    pub name: String,
    /// The key: each value has a budget of its own.
    pub key: Key,
    /// The limits. All of them apply. With `cases`, they apply when no case does.
    #[serde(default)]
    pub(crate) limits: Vec<Limit>,
    /// Chooses the limits by tier or by customer.
    #[serde(default)]
    pub(crate) tiers: Option<Tiers>,
    /// Other limits for some requests. The first case that applies replaces `limits`.
    #[serde(default)]
    pub(crate) cases: Vec<Case>,
    /// The requests that the rule applies to. The default is all.
    #[serde(default)]
    pub when: Option<Condition>,
    /// The cost of a request. The default is 1.
    #[serde(default)]
    pub(crate) cost: Option<Cost>,
    /// Corrects the charge to the actual cost, which the response contains.
    #[serde(default)]
    pub(crate) settle: Option<Settle>,
    /// Settles when the response's body has ended, failed or been dropped, instead of when its head is there.
    /// Then `settle` finds a header in the trailers too. Needs `settle` or `count_if`.
    #[serde(default)]
    pub(crate) settle_at_end: bool,
    /// The most that one request can be settled to, whatever its response says: a bound for how long the next requests
    /// wait for it. Unless set, all that was used is owed. Needs `settle` or `count_if`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) settle_at_most: Option<u64>,
    /// Counts a request only if its response has one of these statuses, such as `[401, 403]` for failed
    /// logins. All others get their charge back.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(range(min = 100, max = 599))))]
    pub(crate) count_if: Vec<u16>,
    /// What happens to a request that this rule refuses. The default is `block`.
    #[serde(default)]
    pub(crate) reject: Option<Reject>,
}

impl Rule {
    /// A rule without limits for all requests.
    pub fn new(name: impl Into<String>, key: Key) -> Self {
        Self {
            name: name.into(),
            key,
            limits: Vec::new(),
            tiers: None,
            cases: Vec::new(),
            when: None,
            cost: None,
            settle: None,
            settle_at_end: false,
            settle_at_most: None,
            count_if: Vec::new(),
            reject: None,
        }
    }

    /// Adds a limit.
    #[must_use]
    pub fn limit(mut self, limit: sluicegate_core::Limit) -> Self {
        self.limits.push(Limit::Text(limit.to_string()));
        self
    }

    /// Sets the cost of each request.
    #[must_use]
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(Cost::Fixed(cost));
        self
    }
}

/// How a rule finds the tier of a request: from the name of the tier (`by`), or from the name of the customer
/// (`customer`) by the document's `customers`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Tiers {
    /// Where the name of the tier is read from: `{ claim = ".." }` or `{ const = ".." }`. Values that a client
    /// can choose, such as headers, are not allowed.
    #[serde(default)]
    pub(crate) by: Option<Key>,
    /// Where the name of the customer is read from, in the same way.
    #[serde(default)]
    pub(crate) customer: Option<Key>,
    /// The tier of requests whose tier or customer is not known.
    pub(crate) default: String,
}

deserialize_tables! {
    Rule: "a rule, a table with `name`, `key` and `limits`",
    Tiers: "a table such as { by = { claim = \"plan\" }, default = \"free\" }"
}
