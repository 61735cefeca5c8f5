use super::contract::KnownLimits;
use crate::key::{Missing, View};
use crate::limit::{Limit, Limits};

/// Where a rule's limits come from: a list, [`Cases`](crate::rule::Cases), [`Tiers`](crate::Tiers), or
/// [`choose`](crate::rule::choose).
pub trait LimitsFor<V: View>: KnownLimits {
    /// Passes the limits for this request to `each`.
    ///
    /// # Errors
    ///
    /// Returns the error of `each`.
    fn each(
        &self,
        view: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing>;

    /// The limit, if it is the same one for every request.
    fn only_one(&self) -> Option<&Limit> {
        None
    }
}

impl<V: View> LimitsFor<V> for Limits {
    #[inline]
    fn only_one(&self) -> Option<&Limit> {
        self.only()
    }

    #[inline]
    fn each(
        &self,
        _: &V,
        each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        match self.only() {
            Some(limit) => each(limit),
            None => self.iter().try_for_each(each),
        }
    }
}

impl KnownLimits for Limits {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.iter().for_each(each);
    }
}
