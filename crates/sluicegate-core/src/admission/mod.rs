//! Admission: takes a request through its decision, whatever the framework.

pub(crate) mod adapter;
pub(crate) mod enforcer;
pub(crate) mod gate;
pub(crate) mod hold;
pub(crate) mod known;
pub(crate) mod paid;
pub(crate) mod refusal;
pub(crate) mod unserved;
