//! The table is immutable and is read as a whole. A change makes the next table and swaps it in. A rule
//! looks at the table once for each request, without a lock and without allocating, so all limits and
//! accounts of one charge come from one table.

use std::collections::HashMap;
use std::sync::Arc;

use super::TierError;
use crate::limit::Limits;

/// All that one request goes by.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Never empty, and none is ever taken away.
    pub(super) tiers: Arc<Vec<Tier>>,
    /// Where the tier stands of whoever is unknown.
    pub(super) otherwise: usize,
    /// Where each customer's tier stands.
    pub(super) customers: Arc<HashMap<Arc<str>, usize>>,
}

#[derive(Debug, Clone)]
pub(super) struct Tier {
    pub(super) name: Arc<str>,
    /// None: unlimited.
    pub(super) limits: Option<Limits>,
}

impl Table {
    pub(super) fn position(&self, tier: &str) -> Option<usize> {
        position(&self.tiers, tier)
    }

    /// Where the tier of a customer stands, who may be unknown.
    pub(super) fn customer(&self, customer: &str) -> usize {
        self.customers.get(customer).copied().unwrap_or(self.otherwise)
    }

    pub(super) fn tier(&self, at: usize) -> &Tier {
        &self.tiers[at]
    }
}

/// Tiers are few: looking through them is as quick as hashing.
pub(super) fn position(tiers: &[Tier], name: &str) -> Option<usize> {
    tiers.iter().position(|tier| *tier.name == *name)
}

impl Tier {
    /// With its limits made to share rows with those of the other `tiers`.
    pub(super) fn limited(tiers: &str, name: &str, limits: &Limits) -> Result<Self, TierError> {
        let placed = limits.sharing_rows(|limit| format!("{tiers}/{}", limit.period_name()));
        let limits = placed.map_err(|error| TierError::limits(tiers, name, error))?;
        Ok(Self { name: name.into(), limits: Some(limits) })
    }

    pub(super) fn unlimited(name: &str) -> Self {
        Self { name: name.into(), limits: None }
    }
}
