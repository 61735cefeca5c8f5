use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use super::customers::Customers;
use super::{Shared, Table, Tier, TierError, Tiers, position};
use crate::limit::Limits;
use crate::observe::report;

/// Tiers without the default tier; see [`Tiers::new`].
#[derive(Debug, Clone)]
pub struct TiersBuilder {
    name: String,
    /// `None` for unlimited.
    tiers: Vec<(String, Option<Limits>)>,
}

impl TiersBuilder {
    pub(super) fn new(name: String) -> Self {
        Self { name, tiers: Vec::new() }
    }

    /// A tier with these limits.
    #[must_use]
    pub fn tier(self, name: impl Into<String>, limits: impl Into<Limits>) -> Self {
        self.and(name.into(), Some(limits.into()))
    }

    /// A tier without any limit. The log reports it when the tiers are made and, at debug level, with each request.
    #[must_use]
    pub fn unlimited(self, name: impl Into<String>) -> Self {
        self.and(name.into(), None)
    }

    /// Completes the tiers. This one is for unknown customers.
    ///
    /// # Panics
    ///
    /// If [`try_otherwise`](Self::try_otherwise) returns an error.
    #[track_caller]
    pub fn otherwise(self, tier: &str) -> Tiers {
        self.try_otherwise(tier).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`otherwise`](Self::otherwise), for tiers from configuration.
    ///
    /// # Errors
    ///
    /// If there is no such tier, two tiers have one name, two limits of a tier are in the same place, or one cannot
    /// be named.
    pub fn try_otherwise(self, tier: &str) -> Result<Tiers, TierError> {
        let table = self.table(tier)?;
        for tier in table.tiers.iter().filter(|tier| tier.limits.is_none()) {
            report::unlimited(&self.name, &tier.name);
        }
        let table = ArcSwap::from_pointee(table);
        let is_told = AtomicBool::new(false);
        let shared = Shared { name: self.name, table, change: Mutex::new(()), is_told };
        Ok(Tiers { shared: Arc::new(shared) })
    }

    fn and(mut self, name: String, limits: Option<Limits>) -> Self {
        self.tiers.push((name, limits));
        self
    }

    fn table(&self, otherwise: &str) -> Result<Table, TierError> {
        let mut tiers = Vec::with_capacity(self.tiers.len());
        for (name, limits) in &self.tiers {
            if position(&tiers, name).is_some() {
                return Err(TierError::twice(&self.name, name));
            }
            tiers.push(match limits {
                Some(limits) => Tier::limited(&self.name, name, limits)?,
                None => Tier::unlimited(name),
            });
        }
        let mut table =
            Table { tiers: tiers.into(), otherwise: 0, customers: Customers::default() };
        match table.position(otherwise) {
            Some(at) => table.otherwise = at,
            None => return Err(TierError::unknown(&self.name, table.names(), otherwise)),
        }
        Ok(table)
    }
}
