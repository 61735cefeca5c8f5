//! Tiers: a table of limits and of customers, changed while running.
//!
//! A tier is chosen by what the server knows. `Tiers` read a `Text`. A claim, an extension and a constant are one,
//! and a header is not; otherwise a client could choose its own tier.
//!
//! An unknown client is in the default tier. A request without claims is one of an unknown client. A missing extension
//! can mean that or a mistake in the set-up, so the log reports it once. A key has no default, so a missing claim stays an
//! error there.

mod builder;
mod by;
mod customers;
mod error;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

pub use self::builder::TiersBuilder;
pub use self::by::ByTier;
use self::customers::Customers;
pub use self::error::TierError;
use crate::key::Missing;
use crate::limit::Limits;
use crate::observe::report;
use crate::rule::row_sharing::sharing_rows;

/// What a customer may do, by the tier that it is in: a table that may be changed at run time.
///
/// ```
/// use sluicegate::{Claim, Limit, Tiers};
///
/// let tiers = Tiers::new("api")
///     .tier("free", [Limit::per_second(5).burst(10), Limit::per_day(10_000)])
///     .tier("paid", [Limit::per_second(50), Limit::per_day(1_000_000)])
///     .unlimited("partner")
///     .otherwise("free");
/// let rule = tiers.clone().by_customer(Claim("customer")).by(Claim("customer"));
///
/// tiers.assign("acme", "paid")?;
/// tiers.replace("free", [Limit::per_second(2), Limit::per_day(5_000)])?;
/// # Ok::<(), sluicegate::rule::TierError>(())
/// ```
///
/// Your application's authentication decides which tier a request is in: by the name of the tier
/// ([`by_tier`](Self::by_tier)) or by that of the customer, which is looked up here
/// ([`by_customer`](Self::by_customer)). Every other request is in the default tier: those of a customer who is not
/// in the table, and those of an unknown client, for whom the application inserts no [`Claims`](crate::key::Claims).
/// Since missing claims may also be a mistake, the log reports them once.
///
/// Clones share one table. A rule reads it once for each request and sees all of a change or nothing;
/// the next request goes by it. What was spent is kept: limits at the same place of two tiers, or of
/// one tier before and after, count as one, as far as they are of one algorithm. A place is a limit's
/// name. What has none is named after these tiers and its period, `api/second` and `api/day` above, and
/// has to be the only one of its tier there.
#[derive(Clone)]
pub struct Tiers {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    table: ArcSwap<Table>,
    /// Held while the next table is made from this one.
    change: Mutex<()>,
    /// Whether a request that does not name its tier has been logged.
    is_told: AtomicBool,
}

impl Tiers {
    /// Begins with no tiers. Their limits are named after `name`.
    #[expect(
        clippy::new_ret_no_self,
        reason = "tiers are complete once they say what holds otherwise"
    )]
    pub fn new(name: impl Into<String>) -> TiersBuilder {
        TiersBuilder::new(name.into())
    }

    /// The limits of the tier that `tier` names, usually a claim with the plan.
    pub fn by_tier<T>(&self, tier: T) -> ByTier<T> {
        ByTier::tier(self.clone(), tier)
    }

    /// The limits of the tier to which the customer that `customer` names is [assigned](Self::assign).
    pub fn by_customer<T>(&self, customer: T) -> ByTier<T> {
        ByTier::customer(self.clone(), customer)
    }

    /// Puts a customer into a tier, from the next request on.
    ///
    /// Takes a few microseconds, also among millions of customers. For many at once there is
    /// [`assign_all`](Self::assign_all).
    ///
    /// # Errors
    ///
    /// If there is no such tier.
    pub fn assign(&self, customer: &str, tier: &str) -> Result<(), TierError> {
        self.assign_all([(customer, tier)])
    }

    /// Puts customers into tiers, all of them at once: no request sees only some of the changes.
    ///
    /// # Errors
    ///
    /// If one of the tiers does not exist. Then no customer is moved.
    pub fn assign_all<C: AsRef<str>, T: AsRef<str>>(
        &self,
        customers: impl IntoIterator<Item = (C, T)>,
    ) -> Result<(), TierError> {
        // Tiers are never moved or removed, so the index stays valid.
        let table = self.shared.table.load_full();
        let customers = customers.into_iter().map(|(customer, tier)| {
            Ok((Arc::from(customer.as_ref()), self.position(&table, tier.as_ref())?))
        });
        let customers = customers.collect::<Result<Vec<_>, TierError>>()?;
        self.change(|table| {
            for (customer, tier) in customers {
                table.customers.insert(customer, tier);
            }
            Ok(())
        })
    }

    /// Puts every customer into the tier at the same place as among those of `other`, and no other customer. Both share
    /// the table of customers until one of them changes.
    ///
    /// # Panics
    ///
    /// If the names of the tiers differ, or their order.
    #[doc(hidden)]
    pub fn share_customers(&self, other: &Self) {
        let customers = {
            let other = other.shared.table.load();
            let (own, other_names) = (self.shared.table.load().names(), other.names());
            assert_eq!(own, other_names, "the tiers are not the same");
            other.customers.clone()
        };
        let done: Result<(), TierError> = self.change(|table| {
            table.customers = customers;
            Ok(())
        });
        done.expect("sharing never fails");
    }

    /// Puts a customer back into the default tier, from the next request on.
    pub fn unassign(&self, customer: &str) {
        let done: Result<(), TierError> = self.change(|table| {
            table.customers.remove(customer);
            Ok(())
        });
        done.expect("taking somebody out never fails");
    }

    /// The tier of a customer.
    pub fn tier_of(&self, customer: &str) -> Arc<str> {
        let table = self.shared.table.load();
        table.tier(table.customer(customer)).name.clone()
    }

    /// Gives a tier other limits, from the next request on. What was spent is kept.
    ///
    /// If a store cannot keep one of them, it reports that when the limit is charged, not here.
    ///
    /// # Errors
    ///
    /// If there is no such tier, two limits are in the same place, or one cannot be named.
    pub fn replace(&self, tier: &str, limits: impl Into<Limits>) -> Result<(), TierError> {
        let limits = limits.into();
        self.change(|table| {
            let at = self.position(table, tier)?;
            let replaced = Tier::limited(&self.shared.name, tier, &limits)?;
            Arc::make_mut(&mut table.tiers)[at] = replaced;
            Ok(())
        })
    }

    /// Makes a tier unlimited, from the next request on.
    ///
    /// # Errors
    ///
    /// If there is no such tier.
    pub fn lift(&self, tier: &str) -> Result<(), TierError> {
        self.change(|table| {
            let at = self.position(table, tier)?;
            Arc::make_mut(&mut table.tiers)[at] = Tier::unlimited(tier);
            report::unlimited(&self.shared.name, tier);
            Ok(())
        })
    }

    /// Makes the next table. If that fails, the present one stays.
    fn change(
        &self,
        change: impl FnOnce(&mut Table) -> Result<(), TierError>,
    ) -> Result<(), TierError> {
        let _one_at_a_time = self.shared.change.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table::clone(&self.shared.table.load());
        change(&mut table)?;
        self.shared.table.store(Arc::new(table));
        Ok(())
    }

    fn tell_once(&self, missing: &Missing, table: &Table) {
        if !self.shared.is_told.swap(true, Ordering::Relaxed) {
            report::stranger(&self.shared.name, &table.tier(table.otherwise).name, missing);
        }
    }

    fn position(&self, table: &Table, tier: &str) -> Result<usize, TierError> {
        table
            .position(tier)
            .ok_or_else(|| TierError::unknown(&self.shared.name, table.names(), tier))
    }
}

/// The tiers and the customers, as one request sees them.
///
/// The table is immutable and is read as a whole. A change makes the next table and swaps it in. A rule
/// looks at the table once for each request, without a lock and without allocating, so all limits and
/// accounts of one charge come from one table.
#[derive(Debug, Clone)]
struct Table {
    /// Never empty. Tiers are never removed.
    tiers: Arc<Vec<Tier>>,
    /// The index of the tier for unknown customers.
    otherwise: usize,
    /// The index of each customer's tier.
    customers: Customers,
}

#[derive(Debug, Clone)]
struct Tier {
    name: Arc<str>,
    /// `None` if the tier is unlimited.
    limits: Option<Limits>,
}

impl Table {
    fn position(&self, tier: &str) -> Option<usize> {
        position(&self.tiers, tier)
    }

    /// The index of a customer's tier. The customer may be unknown.
    fn customer(&self, customer: &str) -> usize {
        self.customers.get(customer).unwrap_or(self.otherwise)
    }

    fn names(&self) -> Vec<String> {
        self.tiers.iter().map(|tier| tier.name.to_string()).collect()
    }

    fn tier(&self, at: usize) -> &Tier {
        &self.tiers[at]
    }
}

/// There are few tiers, so a linear search is as fast as hashing.
fn position(tiers: &[Tier], name: &str) -> Option<usize> {
    tiers.iter().position(|tier| *tier.name == *name)
}

impl Tier {
    /// A tier whose limits share rows with the limits of the other `tiers`.
    fn limited(tiers: &str, name: &str, limits: &Limits) -> Result<Self, TierError> {
        let placed = sharing_rows(limits, |limit| format!("{tiers}/{}", limit.period_name()));
        let limits = placed.map_err(|error| TierError::limits(tiers, name, error))?;
        Ok(Self { name: name.into(), limits: Some(limits) })
    }

    fn unlimited(name: &str) -> Self {
        Self { name: name.into(), limits: None }
    }
}

/// Shows the number of customers, not their names.
impl fmt::Debug for Tiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.shared.table.load();
        f.debug_struct("Tiers")
            .field("name", &self.shared.name)
            .field("tiers", &table.tiers)
            .field("customers", &table.customers.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
