use std::fmt;

use super::contract::{KnownLimits, Rule};
use crate::condition::Condition;
use crate::key::{Missing, View};
use crate::limit::Limit;
use crate::store::charge::Charge;

/// A rule that applies to some requests only; see [`By::when`](crate::rule::By::when).
#[derive(Clone, Copy)]
pub struct When<R, F> {
    rule: R,
    applies: F,
}

impl<R, F> When<R, F> {
    pub(super) const fn new(rule: R, applies: F) -> Self {
        Self { rule, applies }
    }
}

impl<V: View, R: Rule<V>, F: Condition<V>> Rule<V> for When<R, F> {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        match self.applies.holds(view) {
            Ok(true) => self.rule.charge(view, charge),
            Ok(false) => Ok(()),
            Err(_) if self.rule.are_shadows() => Ok(()),
            Err(missing) => Err(missing),
        }
    }
}

impl<R: KnownLimits, F> KnownLimits for When<R, F> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.rule.each_limit(each);
    }
}

impl<R, F> fmt::Debug for When<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("When")
    }
}
