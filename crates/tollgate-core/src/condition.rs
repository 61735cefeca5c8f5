//! Conditions: to which requests a rule applies, and which limits hold for them.

mod extension;
mod host;
mod list;
mod path;
mod pattern;
mod target;
mod values;
mod within;

use std::fmt;

pub use self::extension::ExtensionIs;
pub use self::host::HostIs;
pub use self::list::{AllOf, AnyOf};
pub use self::path::PathMatches;
pub use self::pattern::PatternError;
pub use self::target::{MethodIs, RouteIs};
pub use self::values::{Equals, Present, Values};
pub use self::within::{NetworkError, Within};
use crate::key::View;

/// Says yes or no to a request.
///
/// A closure over the framework's own request is a condition; so is what keys have to say of
/// themselves, and [`Not`] and [`Either`] of others. A tuple of conditions holds when all of them do;
/// [`AnyOf`] and [`AllOf`] are for lists.
///
/// | condition | holds for requests |
/// | --- | --- |
/// | [`Method.is("POST")`](crate::Method::is), [`is_any`](crate::Method::is_any) | of a method |
/// | [`Route.is("/users/{id}")`](crate::Route::is) | that matched a route |
/// | [`Path.matches("/api/*")`](crate::Path::matches) | to paths of a pattern |
/// | [`Host.is("example.com")`](crate::Host::is), [`matches("*.example.com")`](crate::Host::matches) | for a host |
/// | [`Header("x").equals("v")`](crate::Header::equals), [`is_present`](crate::Header::is_present); [`Query`](crate::Query), [`Cookie`](crate::Cookie) and [`Claim`](crate::Claim) too | with such a value |
/// | [`Extension::<T>::new().is(..)`](crate::Extension::is) | to which an earlier layer added such a value |
/// | [`Ip::peer().within(["10.0.0.0/8"])`](crate::Ip::within) | from a network |
///
/// ```
/// use tollgate_core::{Ip, Limit, Not};
///
/// struct Request { preflight: bool } // your framework's request
///
/// let rule = Limit::per_second(10).by(Ip::peer()).when(Not(|request: &Request| request.preflight));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on these requests",
    label = "not a condition",
    note = "a closure over the framework's request is one: `|request: &Request<Body>| ..`"
)]
pub trait Condition<V: View> {
    /// Whether it holds for the request of `view`.
    fn holds(&self, view: &V) -> bool;
}

impl<V: View, F: Fn(&V::Request) -> bool> Condition<V> for F {
    fn holds(&self, view: &V) -> bool {
        self(view.request())
    }
}

/// Holds when the condition inside does not.
#[derive(Clone, Copy)]
pub struct Not<C>(pub C);

impl<V: View, C: Condition<V>> Condition<V> for Not<C> {
    fn holds(&self, view: &V) -> bool {
        !self.0.holds(view)
    }
}

impl<C> fmt::Debug for Not<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Not")
    }
}

/// Holds when one of the two conditions does.
#[derive(Clone, Copy)]
pub struct Either<A, B>(pub A, pub B);

impl<V: View, A: Condition<V>, B: Condition<V>> Condition<V> for Either<A, B> {
    fn holds(&self, view: &V) -> bool {
        self.0.holds(view) || self.1.holds(view)
    }
}

impl<A, B> fmt::Debug for Either<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Either")
    }
}

macro_rules! tuples {
    ($($condition:ident),*) => {
        impl<V: View, $($condition: Condition<V>),*> Condition<V> for ($($condition,)*) {
            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn holds(&self, view: &V) -> bool {
                let ($($condition,)*) = self;
                $($condition.holds(view))&&*
            }
        }
    };
}

tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);

#[cfg(test)]
mod tests;
