//! Costs: how much of a limit a request uses.
//!
//! A request costs 1 unless its rule says otherwise: a number, a function of the request ([`cost_fn`]), something
//! in the request ([`cost_from`]) or the length of its body ([`content_length`]). A cost that is only known with
//! the response is reserved first and settled later: the handler leaves [`Cost`] or a [`RunningCost`].
//!
//! ```
//! use sluicegate::cost::content_length;
//! use sluicegate::{Ip, Limit};
//!
//! // A megabyte a second, counted in bytes of the requests' bodies.
//! let uploads = Limit::per_second(1_000_000).by(Ip::peer()).cost(content_length());
//! # let _ = uploads;
//! ```

pub(crate) mod account;
pub(crate) mod running;

pub use self::account::{Cost, Settlement, reply_header, reply_header_scaled};
pub use self::running::RunningCost;
mod amount;
mod from;
mod number;

use std::fmt;

pub use self::amount::{Amount, ContentLength};
pub use self::from::{CostFrom, content_length, cost_from};
use crate::key::{Missing, View};

/// What a request costs: a number, [`cost_fn`], [`cost_from`] or [`content_length`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a cost of these requests",
    label = "not a cost",
    note = "a cost is a `u64`, `cost_fn(|request: &Request| ..)` or `cost_from(Header(\"name\"))`"
)]
pub trait CostOf<V: View> {
    /// The cost of this request.
    ///
    /// # Errors
    ///
    /// Returns what is missing or garbled, and whether the client or the server has to fix it.
    fn of(&self, view: &V) -> Result<u64, Missing>;

    /// Whether the cost is the length of the request's body, like that of [`content_length`]. A request that a limit
    /// can never admit is then answered with `413 Content Too Large`.
    #[inline]
    fn is_length(&self) -> bool {
        false
    }

    /// Whether the cost is above the limit because the rule is to refuse every request. That is answered with
    /// `429 Too Many Requests`, because the request is like any other.
    #[doc(hidden)]
    #[inline]
    fn is_block(&self) -> bool {
        false
    }
}

impl<V: View> CostOf<V> for u64 {
    #[inline(always)]
    fn of(&self, _: &V) -> Result<u64, Missing> {
        Ok(*self)
    }
}

/// A cost worked out from the request.
pub fn cost_fn<Q, F: Fn(&Q) -> u64>(cost: F) -> CostFn<F> {
    CostFn(cost)
}

/// A cost worked out from the request; see [`cost_fn`].
#[derive(Clone, Copy)]
pub struct CostFn<F>(F);

impl<V: View, F: Fn(&V::Request) -> u64> CostOf<V> for CostFn<F> {
    #[inline]
    fn of(&self, view: &V) -> Result<u64, Missing> {
        Ok((self.0)(view.request()))
    }
}

impl<F> fmt::Debug for CostFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CostFn")
    }
}

#[cfg(test)]
mod tests;
