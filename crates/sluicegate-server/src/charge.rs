//! What a described request owes by the rules.

use sluicegate_config::Live;
use sluicegate_core::adapter::Charge;
use sluicegate_core::key::Missing;
use sluicegate_core::rule::Rule;

use crate::request::DescribedRequest;

/// The charge of a request, each limit with `cost` instead of what the rules say, if there is one.
pub(crate) fn charge(
    rules: &Live,
    request: &DescribedRequest,
    cost: Option<u64>,
) -> Result<Charge, Missing> {
    let mut charge = Charge::new();
    rules.charge(request, &mut charge)?;
    let Some(cost) = cost else { return Ok(charge) };
    let mut other = Charge::new();
    for debit in charge.debits() {
        other.add(debit.limit, debit.key, cost)?;
    }
    Ok(other)
}
