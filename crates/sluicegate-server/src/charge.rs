//! What a request owes by the rules of a service.

use sluicegate_config::Live;
use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::key::{Missing, View};
use sluicegate_core::rule::{KnownLimits, Rule};

use crate::request::DescribedRequest;

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
        self.live.charge(view, &mut owed)?;
        for debit in owed.debits() {
            charge.add(as_shadow(debit.limit), debit.key, debit.cost)?;
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

/// The charge of a request, each limit with what `cost` makes of what the rules say, if it is there.
pub(crate) fn charge(
    rules: &Rules,
    request: &DescribedRequest,
    cost: Option<impl Fn(u64) -> u64>,
) -> Result<Charge, Missing> {
    let mut charge = Charge::new();
    rules.charge(&request.view(), &mut charge)?;
    let Some(cost) = cost else { return Ok(charge) };
    let mut other = Charge::new();
    for debit in charge.debits() {
        other.add(debit.limit, debit.key, cost(debit.cost))?;
    }
    Ok(other)
}
