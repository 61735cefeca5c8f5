//! The rules of a service, and how requests are decided by them.

use sluicegate_config::Live;
use sluicegate_core::Limit;
use sluicegate_core::adapter::{self, Charge};
use sluicegate_core::key::{Missing, View};
use sluicegate_core::rule::{KnownLimits, Rule};
use sluicegate_core::store::BoxStore;

/// How requests are decided, as core has it.
pub(crate) type Enforcer = adapter::Enforcer<BoxStore>;

/// The rules of a service: those of its file, each limit as a shadow in a service that refuses nothing.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    live: Live,
    shadow: bool,
}

impl Rules {
    pub(crate) fn new(live: &Live, shadow: bool) -> Self {
        Self { live: live.clone(), shadow }
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }
}

impl<V: View> Rule<V> for Rules {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        if !self.shadow {
            return self.live.charge(view, charge);
        }
        let mut owed = Charge::new();
        if let Err(missing) = self.live.charge(view, &mut owed) {
            // The rules after the one that lacks its key are not asked.
            tracing::debug!(%missing, "without shadow mode, a request would be answered with an error");
        }
        for debit in owed.debits() {
            let mut debit = debit.clone();
            debit.limit = as_shadow(debit.limit);
            charge.add_debit(debit)?;
        }
        Ok(())
    }
}

impl KnownLimits for Rules {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.live.each_limit(&mut |limit| match self.shadow {
            true => each(&as_shadow(*limit)),
            false => each(limit),
        });
    }
}

fn as_shadow(limit: Limit) -> Limit {
    limit.try_shadow().unwrap_or(limit)
}

/// Rules for requests whose responses the server does not see: what they charge stands.
#[derive(Debug, Clone)]
pub(crate) struct StandingRules(pub(crate) Rules);

impl<V: View> Rule<V> for StandingRules {
    #[inline]
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        self.0.charge(view, charge)?;
        charge.stand();
        Ok(())
    }
}

impl KnownLimits for StandingRules {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.0.each_limit(each);
    }
}

/// Rules with another cost than theirs, if the client has one.
pub(crate) struct PricedRules<'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) price: Price,
}

/// What a request costs at each limit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Price {
    /// As much as the rules say, this many times.
    Times(u64),
    /// This, whatever the rules say.
    Exactly(u64),
}

impl<V: View> Rule<V> for PricedRules<'_> {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        if let Price::Times(1) = self.price {
            return self.rules.charge(view, charge);
        }
        let mut owed = Charge::new();
        self.rules.charge(view, &mut owed)?;
        for debit in owed.debits() {
            let mut debit = debit.clone();
            debit.cost = match self.price {
                Price::Times(times) => debit.cost.saturating_mul(times),
                Price::Exactly(cost) => cost,
            };
            charge.add_debit(debit)?;
        }
        Ok(())
    }
}

impl KnownLimits for PricedRules<'_> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rules.each_limit(each);
    }
}
