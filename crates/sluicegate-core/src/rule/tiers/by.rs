use super::{Table, Tiers};
use crate::key::{Missing, Text, View};
use crate::limit::{Limit, Limits};
use crate::observe::report;
use crate::rule::{By, KnownLimits, LimitsFor};

/// The limits of the tier that a text names; see [`Tiers::by_tier`] and [`Tiers::by_customer`].
#[derive(Debug, Clone)]
pub struct ByTier<T> {
    tiers: Tiers,
    text: T,
    names: Names,
}

/// What the text names.
#[derive(Debug, Clone, Copy)]
enum Names {
    Tier,
    Customer,
}

impl<T> ByTier<T> {
    pub(super) fn tier(tiers: Tiers, text: T) -> Self {
        Self { tiers, text, names: Names::Tier }
    }

    pub(super) fn customer(tiers: Tiers, text: T) -> Self {
        Self { tiers, text, names: Names::Customer }
    }

    /// The rule that charges these limits to `key`.
    pub fn by<K>(self, key: K) -> By<K, Self> {
        By::new(self, key)
    }

    fn position(&self, table: &Table, text: &str) -> usize {
        match self.names {
            Names::Tier => table.position(text).unwrap_or(table.otherwise),
            Names::Customer => table.customer(text),
        }
    }
}

/// A request that does not name its tier or customer comes from an unknown client. So does a request for which the
/// server provides nothing that could name it, which is logged once: many servers insert claims only for clients that
/// are signed in.
impl<V: View, T: Text<V>> LimitsFor<V> for ByTier<T> {
    fn each(
        &self,
        view: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        let table = self.tiers.shared.table.load();
        let at = match self.text.read(view, |text| self.position(&table, text)) {
            Err(missing) if missing.is_ambiguous() => return Err(missing),
            Err(missing) => {
                if missing.is_server() {
                    self.tiers.tell_once(&missing, &table);
                }
                table.otherwise
            }
            Ok(found) => found,
        };
        let tier = table.tier(at);
        match &tier.limits {
            Some(limits) => limits.iter().try_for_each(each),
            None => {
                report::passed(&self.tiers.shared.name, &tier.name);
                Ok(())
            }
        }
    }
}

/// All limits of all tiers, as they are now.
impl<T> KnownLimits for ByTier<T> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        let table = self.tiers.shared.table.load();
        table
            .tiers
            .iter()
            .filter_map(|tier| tier.limits.as_ref())
            .flat_map(Limits::iter)
            .for_each(each);
    }
}
