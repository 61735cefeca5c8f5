//! Conditions: to which requests a rule applies, and which limits hold for them.

use std::fmt;

use crate::key::View;

/// Says yes or no to a request.
///
/// A closure over the framework's own request is a condition; so is what keys have to say of
/// themselves, and [`Not`] and [`Either`] of others. A tuple of conditions holds when all of them do.
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
