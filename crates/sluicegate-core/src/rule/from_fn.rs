use std::fmt;

use super::contract::{KnownLimits, Rule};
use crate::key::{Missing, View};
use crate::limit::Limit;
use crate::store::charge::Charge;

/// A rule that writes the charge itself: limits, keys and costs, together, for each request.
pub fn rule_fn<Q, F>(charge: F) -> RuleFn<F>
where
    F: Fn(&Q, &mut Charge) -> Result<(), Missing>,
{
    RuleFn(charge)
}

/// A rule that writes the charge itself; see [`rule_fn`].
#[derive(Clone, Copy)]
pub struct RuleFn<F>(F);

impl<V, F> Rule<V> for RuleFn<F>
where
    V: View,
    F: Fn(&V::Request, &mut Charge) -> Result<(), Missing>,
{
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        (self.0)(view.request(), charge)
    }
}

impl<F> KnownLimits for RuleFn<F> {
    fn each_limit(&self, _: &mut dyn FnMut(&Limit)) {}
}

impl<F> fmt::Debug for RuleFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RuleFn")
    }
}
