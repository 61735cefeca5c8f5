//! The table is immutable and is read as a whole. A change makes the next table and swaps it in. A rule
//! looks at the table once for each request, without a lock and without allocating, so all limits and
//! accounts of one charge come from one table.

use std::sync::Arc;

use super::customers::Customers;
use super::error::TierError;
use crate::limit::Limits;
use crate::rule::row_sharing::sharing_rows;

/// The tiers and the customers, as one request sees them.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Never empty. Tiers are never removed.
    pub(super) tiers: Arc<Vec<Tier>>,
    /// The index of the tier for unknown customers.
    pub(super) otherwise: usize,
    /// The index of each customer's tier.
    pub(super) customers: Customers,
}

#[derive(Debug, Clone)]
pub(super) struct Tier {
    pub(super) name: Arc<str>,
    /// `None` if the tier is unlimited.
    pub(super) limits: Option<Limits>,
}

impl Table {
    pub(super) fn position(&self, tier: &str) -> Option<usize> {
        position(&self.tiers, tier)
    }

    /// The index of a customer's tier. The customer may be unknown.
    pub(super) fn customer(&self, customer: &str) -> usize {
        self.customers.get(customer).unwrap_or(self.otherwise)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.tiers.iter().map(|tier| tier.name.to_string()).collect()
    }

    pub(super) fn tier(&self, at: usize) -> &Tier {
        &self.tiers[at]
    }
}

/// There are few tiers, so a linear search is as fast as hashing.
pub(super) fn position(tiers: &[Tier], name: &str) -> Option<usize> {
    tiers.iter().position(|tier| *tier.name == *name)
}

impl Tier {
    /// A tier whose limits share rows with the limits of the other `tiers`.
    pub(super) fn limited(tiers: &str, name: &str, limits: &Limits) -> Result<Self, TierError> {
        let placed = sharing_rows(limits, |limit| format!("{tiers}/{}", limit.period_name()));
        let limits = placed.map_err(|error| TierError::limits(tiers, name, error))?;
        Ok(Self { name: name.into(), limits: Some(limits) })
    }

    pub(super) fn unlimited(name: &str) -> Self {
        Self { name: name.into(), limits: None }
    }
}
