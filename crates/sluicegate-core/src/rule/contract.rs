use std::fmt;
use std::sync::Arc;

use crate::key::{Missing, View};
use crate::limit::{Limit, Limits};
use crate::store::charge::Charge;

/// Writes down what a request is charged.
///
/// Made by [`Limit::by`] and [`Limits::by`](crate::limit::Limits::by). A tuple of rules charges all of them or none.
/// [`rule_fn`](crate::rule::rule_fn) is for everything else.
///
/// ```
/// use sluicegate::{Global, Ip, Limit};
/// use sluicegate::limit::Limits;
///
/// let rule = (
///     Limits::from([Limit::per_second(10), Limit::per_day(10_000)]).by(Ip::peer()),
///     Limit::concurrent(500).by(Global),
/// );
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a rule for these requests",
    label = "not a rule",
    note = "a limit becomes a rule by a key: `limit.by(Ip::peer())`, `limit.by(Header(\"x-api-key\"))`"
)]
pub trait Rule<V: View>: KnownLimits {
    /// Adds to `charge` what the request of `view` is charged.
    ///
    /// # Errors
    ///
    /// Returns what is missing, and whether the client or the server has to add it.
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing>;
}

/// The limits of a rule that are known before any request, so that a store can report at the start what it cannot
/// keep.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a rule",
    label = "not a rule",
    note = "a limit becomes a rule by a key: `limit.by(Ip::peer())`, `limit.by(Header(\"x-api-key\"))`"
)]
pub trait KnownLimits {
    /// Shows each limit that is known. A rule that knows none shows none.
    fn each_limit(&self, each: &mut dyn FnMut(&Limit));

    /// Whether there are limits, and all of them are [shadows](Limit::shadow). They refuse nothing.
    fn are_shadows(&self) -> bool {
        let (mut any, mut all) = (false, true);
        self.each_limit(&mut |limit| {
            any = true;
            all &= limit.is_shadow();
        });
        any && all
    }
}

/// One rule for many layers, if it is expensive or impossible to clone.
impl<V: View, R: Rule<V> + ?Sized> Rule<V> for Arc<R> {
    #[inline]
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        (**self).charge(view, charge)
    }
}

impl<R: KnownLimits + ?Sized> KnownLimits for Arc<R> {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        (**self).each_limit(each);
    }
}

macro_rules! tuples {
    ($($rule:ident),*) => {
        impl<V: View, $($rule: Rule<V>),*> Rule<V> for ($($rule,)*) {
            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
                let ($($rule,)*) = self;
                $($rule.charge(view, charge)?;)*
                Ok(())
            }
        }

        impl<$($rule: KnownLimits),*> KnownLimits for ($($rule,)*) {
            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
                let ($($rule,)*) = self;
                $($rule.each_limit(each);)*
            }
        }
    };
}

tuples!(A);
tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);
tuples!(A, B, C, D, E);
tuples!(A, B, C, D, E, F);

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
