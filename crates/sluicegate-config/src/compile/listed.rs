use std::collections::BTreeMap;

use sluicegate_core::Limit;
use sluicegate_core::limit::Limits;

/// The limits of one tier, or of one case, for people to read.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// The tier or the case; empty where there is but one.
    pub(crate) of: String,
    /// None: unlimited.
    pub(crate) limits: Option<Limits>,
    /// Whether what is spent of them is spent of no others, though these may be called the same.
    pub(crate) is_apart: bool,
}

impl Listed {
    /// The limits of all.
    pub(crate) fn limits(listed: &[Self]) -> impl Iterator<Item = &Limit> {
        listed.iter().filter_map(|one| one.limits.as_ref()).flat_map(Limits::iter)
    }

    /// The first limit that `differs` from the one that was first called the same, of those that share what is
    /// spent.
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
