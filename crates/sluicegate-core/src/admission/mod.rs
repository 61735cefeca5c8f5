//! Admission: takes a request through its decision, whatever the framework.
//!
//! [`Enforcer::admit`](enforcer::Enforcer::admit) is the whole of it: the rule writes the charge, the store answers
//! it, the [gate](gate) says what happens to a request that exceeds a limit. What is served has [`Paid`](paid::Paid),
//! what is not gets a [`Refusal`](refusal::Refusal), and what has to wait is [`Pending`](pending::Pending).

pub(crate) mod adapter;
pub(crate) mod admit;
pub(crate) mod enforcer;
pub(crate) mod gate;
pub(crate) mod judge;
pub(crate) mod known;
pub(crate) mod paid;
pub(crate) mod pending;
pub(crate) mod refusal;
mod refusal_fields;
pub(crate) mod respond;
pub(crate) mod settings;
pub(crate) mod unsettled;
