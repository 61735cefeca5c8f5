#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};

use super::shape::{Amount, Shaped, deserialize_shaped, deserialize_tables};
use super::{Condition, Cost, Key, Limit, Settle};
use crate::source::DocumentPath;

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
    pub(crate) tiers: Option<Tiers>,
    /// Other limits for some requests. The first case that applies replaces `limits`. A request that may be in a case,
    /// because its path can be read in several ways or it has a header twice, is charged by the limits after it too.
    #[serde(default)]
    pub(crate) cases: Vec<Case>,
    /// The requests that the rule applies to. The default is all.
    pub when: Option<Condition>,
    /// The cost of a request. The default is 1.
    pub(crate) cost: Option<Cost>,
    /// Corrects the charge to the actual cost, which the response contains.
    pub(crate) settle: Option<Settle>,
    /// Settles when the response's body has ended, failed or been dropped, instead of when its head is there.
    /// Then `settle` finds a header in the trailers too. Needs `settle` or `count_if`.
    #[serde(default)]
    pub(crate) settle_at_end: bool,
    /// The most that one request can be settled to, whatever its response says: a bound for how long the next requests
    /// wait for it. Unless set, all that was used is owed. Needs `settle` or `count_if`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(crate) settle_at_most: Option<u64>,
    /// Counts a request only if its response has one of these statuses, such as `[401, 403]` for failed
    /// logins. All others get their charge back.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(range(min = 101, max = 599))))]
    pub(crate) count_if: Vec<u16>,
    /// What happens to a request that this rule refuses. The default is `block`.
    pub(crate) reject: Option<Reject>,
    /// Refuses every request. No limit is 0, so its limits are 1. TOML and JSON files cannot express this; Envoy's files
    /// can.
    #[serde(skip)]
    pub(crate) blocks: bool,
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
            blocks: false,
        }
    }

    /// Refuses every request.
    #[cfg(feature = "envoy")]
    pub(crate) fn block(mut self) -> Self {
        self.blocks = true;
        self
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

    /// Calls `each` with every condition of the rule and of its cases.
    pub(crate) fn each_condition(
        &self,
        path: &DocumentPath<'_>,
        each: &mut dyn FnMut(&Condition, &DocumentPath<'_>),
    ) {
        if let Some(when) = &self.when {
            when.each(&path.name("when"), each);
        }
        let cases = path.name("cases");
        for (i, case) in self.cases.iter().enumerate() {
            if let Some(when) = &case.when {
                when.each(&cases.index(i).name("when"), each);
            }
        }
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
    pub(crate) by: Option<Key>,
    /// Where the name of the customer is read from, in the same way.
    pub(crate) customer: Option<Key>,
    /// The tier of requests whose tier or customer is not known.
    pub(crate) default: String,
}

/// Other limits for requests that match `when`, while `while` holds. At least one of the two is needed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Case {
    /// The name of the case. A case with a budget of its own keeps what was spent under this name when its
    /// conditions change. Without a name, it starts from zero when its conditions change.
    pub(crate) name: Option<String>,
    /// The requests that the case applies to.
    pub(crate) when: Option<Condition>,
    /// The load at which the case applies. It allows more generous limits while the service has capacity to spare.
    #[serde(rename = "while")]
    pub(crate) load: Option<Load>,
    /// The limits in this case.
    pub(crate) limits: Vec<Limit>,
    /// Whether the case shares its budget with the other limits of the rule. By default it does if only the
    /// server chooses the case (`hours`, `claim`, `network`, `country`, `region`, `while`). A case that the client
    /// can choose, by path, header or method, has a budget of its own.
    pub(crate) shared: Option<bool>,
}

/// A condition on the load of the service: one of `has_capacity`, `in_flight` and `cpu`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Load {
    /// The function of the service with this name returns `true`: there is capacity to spare.
    pub(crate) has_capacity: Option<String>,
    /// Fewer requests than this are being served.
    pub(crate) in_flight: Option<u64>,
    /// This process uses less than this percentage of the processors, such as `80%`.
    pub(crate) cpu: Option<Amount>,
}

/// What happens to a request over the limit.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "lowercase"))]
pub(crate) enum Reject {
    /// It is refused: `429 Too Many Requests`.
    Block,
    /// It is served, and reported as a request that would have been refused.
    Shadow,
    /// It is served with a mark, so that the handler can serve less.
    Degrade,
    /// It is redirected.
    #[cfg_attr(feature = "schema", schemars(untagged))]
    Redirect(Redirect),
}

/// Where a request over the limit is redirected.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Redirect {
    /// The target, such as `https://busy.example.com/`.
    pub(crate) redirect: String,
    /// The status: 302, 303, 307 or 308. The default is 307.
    pub(crate) status: Option<u16>,
}

impl<'de> Shaped<'de> for Reject {
    const EXPECTED: &'static str =
        "\"block\", \"shadow\", \"degrade\" or { redirect = \"https://busy.example.com/\" }";

    fn text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "block" => Ok(Self::Block),
            "shadow" => Ok(Self::Shadow),
            "degrade" => Ok(Self::Degrade),
            _ => Err(E::unknown_variant(text, &["block", "shadow", "degrade"])),
        }
    }

    fn table<A: MapAccess<'de>>(table: A) -> Result<Self, A::Error> {
        Redirect::deserialize(MapAccessDeserializer::new(table)).map(Self::Redirect)
    }
}

deserialize_shaped!(Reject);

deserialize_tables! {
    Rule: "a rule, a table with `name`, `key` and `limits`",
    Tiers: "a table such as { by = { claim = \"plan\" }, default = \"free\" }",
    Case: "a table with `when` or `while`, and `limits`",
    Load: "a table such as { in_flight = 100 }"
}
