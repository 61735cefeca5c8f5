//! Tiers: limits by what the service knows about a customer.

use sluicegate_core::limit::Limits;
use sluicegate_core::rule::{ByTier, TiersBuilder};
use std::collections::BTreeMap;

use sluicegate_core::{Limit, Tiers};

use super::Context;
use super::key::Text;
use super::limit::{Budget, Names};
use crate::document::{self, Document, Key, Tier};
use crate::source::DocumentPath;
use crate::words::one_of;

/// The tiers of a document as limits of one of its rules.
pub(super) fn by_tier(
    spec: &document::Tiers,
    names: &Names<'_>,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<(ByTier<Text>, Vec<LimitGroup>)> {
    let document = context.document;
    let default = &spec.default;
    let known = context.check(&path.name("default"), known_tier(document, default));
    let chosen = match (&spec.by, &spec.customer) {
        (Some(key), None) => Text::new(key, &path.name("by"), context).map(TierKey::Tier),
        (None, Some(key)) => Text::new(key, &path.name("customer"), context).map(TierKey::Customer),
        (None, None) => context
            .refuse(path, "the source of the tier is missing: expected one of `by` and `customer`"),
        (Some(_), Some(_)) => {
            context.refuse(path, "the tier has two sources: expected one of `by` and `customer`")
        }
    };
    // One that is no tier would be the default for every request, which needs no `by`.
    if let Some(Key::Const(name)) = &spec.by {
        context.check(&path.name("by"), known_tier(document, name));
    }
    let groups = limits(names, context);
    known?;
    let groups = groups?;
    let tiers = context.check(path, table(names.rule(), &groups).try_otherwise(default))?;
    let by_tier = match chosen? {
        TierKey::Tier(text) => tiers.by_tier(text),
        TierKey::Customer(text) => {
            // A document may have very many customers, and very many rules that look them up.
            if let Some(known) = context.customers.get() {
                tiers.share_customers(known);
            } else {
                // Customers with an unknown tier are reported elsewhere.
                let customers = document.customers.iter();
                let customers = customers.filter(|(_, tier)| document.tiers.contains_key(*tier));
                context.check(path, tiers.assign_all(customers))?;
                context.customers.get_or_init(|| tiers.clone());
            }
            tiers.by_customer(text)
        }
    };
    Some((by_tier, groups.into_iter().map(|tier| tier.group(default)).collect()))
}

enum TierKey {
    Tier(Text),
    Customer(Text),
}

/// A tier, with its limits named after a rule.
struct NamedTier<'a> {
    name: &'a str,
    /// `None` if unlimited.
    limits: Option<Limits>,
}

impl NamedTier<'_> {
    fn group(self, default: &str) -> LimitGroup {
        let otherwise = if self.name == default { ", and otherwise" } else { "" };
        let of = format!("tier `{}`{otherwise}", self.name);
        LimitGroup { of, limits: self.limits, is_apart: false }
    }
}

/// All tiers. `None` if one of them has a limit that is not valid.
fn limits<'a>(names: &Names<'_>, context: &Context<'a>) -> Option<Vec<NamedTier<'a>>> {
    let list = DocumentPath::Root.name("tiers");
    let named = context.document.tiers.iter().map(|(name, tier)| {
        let path = list.name(name);
        let limits = match tier {
            Tier { unlimited: true, .. } => None,
            Tier { limits, .. } => {
                Some(names.give(limits, Budget::Shared, &path.name("limits"), context)?)
            }
        };
        Some(NamedTier { name, limits })
    });
    named.collect::<Vec<_>>().into_iter().collect()
}

fn table(rule: &str, named: &[NamedTier<'_>]) -> TiersBuilder {
    named.iter().fold(Tiers::new(rule), |tiers, tier| match &tier.limits {
        Some(limits) => tiers.tier(tier.name, limits.clone()),
        None => tiers.unlimited(tier.name),
    })
}

/// Reports errors in the tiers and customers of a document, even if no rule uses them.
pub(super) fn look(context: &Context<'_>) {
    let list = DocumentPath::Root.name("tiers");
    for (name, tier) in &context.document.tiers {
        let path = list.name(name);
        match (tier.limits.as_slice(), tier.unlimited) {
            ([], true) => {}
            ([], false) => {
                let message = "the tier has no limits, expected `limits`, or `unlimited = true`";
                context.report(&path, message);
            }
            (_, true) => {
                let message = "the tier has limits and is unlimited: expected one of the two";
                context.report(&path, message);
            }
            (limits, false) => super::limit::look(limits, &path.name("limits"), context),
        }
    }
    let list = DocumentPath::Root.name("customers");
    for (customer, tier) in &context.document.customers {
        context.check(&list.name(customer), known_tier(context.document, tier));
    }
}

fn known_tier(document: &Document, name: &str) -> Result<(), String> {
    if document.tiers.contains_key(name) {
        return Ok(());
    }
    let none = || "a name under `tiers`, where there is none".to_owned();
    let expected = one_of(document.tiers.keys()).unwrap_or_else(none);
    Err(format!("there is no tier `{name}`, expected {expected}"))
}

/// The limits of one tier or case, for reports.
#[derive(Debug, Clone)]
pub(crate) struct LimitGroup {
    /// The tier or case in words. Empty if the rule has none.
    pub(crate) of: String,
    /// `None` if unlimited.
    pub(crate) limits: Option<Limits>,
    /// Whether they have a budget of their own, even if other limits have the same name.
    pub(crate) is_apart: bool,
}

impl LimitGroup {
    /// All limits.
    pub(crate) fn limits(groups: &[Self]) -> impl Iterator<Item = &Limit> {
        groups.iter().filter_map(|one| one.limits.as_ref()).flat_map(Limits::iter)
    }

    /// Of the limits that share a budget, the first that `differs` from the first limit with its name.
    pub(crate) fn different(
        groups: &[Self],
        differs: impl Fn(&Limit, &Limit) -> bool,
    ) -> Option<&Limit> {
        let mut first = BTreeMap::new();
        let shared = groups.iter().filter(|one| !one.is_apart);
        shared
            .filter_map(|one| one.limits.as_ref())
            .flat_map(Limits::iter)
            .find(|limit| differs(first.entry(limit.own_name()).or_insert(*limit), limit))
    }
}
