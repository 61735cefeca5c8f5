//! Admission: takes a request through its decision, in any framework.
//!
//! [`Enforcer::admit`](enforcer::Enforcer::admit) does all of it: the rule writes the charge, the store answers it,
//! and the [gate](gate) decides what happens to a request that exceeds a limit. A served request has
//! [`Paid`](paid::Paid), a refused one gets a [`Refusal`](refusal::Refusal), and one that has to wait is
//! [`Pending`](pending::Pending).

pub(crate) mod admit;
pub(crate) mod enforcer;
pub(crate) mod gate;
pub(crate) mod known_limit;
pub(crate) mod lazy_decision;
pub(crate) mod paid;
pub(crate) mod pending;
pub(crate) mod refusal;
pub(crate) mod respond;
pub(crate) mod unserved;

#[cfg(test)]
mod tests;
