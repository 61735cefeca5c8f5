use std::collections::BTreeMap;

use sluicegate_core::Limit;
use sluicegate_core::limit::Limits;

/// The limits of one tier or case, for reports.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// The tier or case in words. Empty if the rule has none.
    pub(crate) of: String,
    /// `None` if unlimited.
    pub(crate) limits: Option<Limits>,
    /// Whether they have a budget of their own, even if other limits have the same name.
    pub(crate) is_apart: bool,
}

impl Listed {
    /// All limits.
    pub(crate) fn limits(listed: &[Self]) -> impl Iterator<Item = &Limit> {
        listed.iter().filter_map(|one| one.limits.as_ref()).flat_map(Limits::iter)
    }

    /// Of the limits that share a budget, the first that `differs` from the first limit with its name.
    pub(crate) fn different(
        listed: &[Self],
        differs: impl Fn(&Limit, &Limit) -> bool,
    ) -> Option<&Limit> {
        let mut first = BTreeMap::new();
        let shared = listed.iter().filter(|one| !one.is_apart);
        shared
            .filter_map(|one| one.limits.as_ref())
            .flat_map(Limits::iter)
            .find(|limit| differs(first.entry(limit.own_name()).or_insert(*limit), limit))
    }
}
