//! The Lua scripts, how they are called, and how their answers are read.
//!
//! The scripts repeat [`decide`](sluicegate_core::adapter::decide) number by number. The tests of this module compare
//! the two.

pub(crate) mod batch;
mod call;
mod caller;
pub(crate) mod command;
pub(crate) mod lease;
mod operation;
mod pack;
pub(crate) mod renew;
mod reply;
mod row;
mod source;

pub(crate) use self::call::Call;
pub(crate) use self::caller::Caller;
pub(crate) use self::operation::Operation;
pub(crate) use self::reply::Reply;
pub(crate) use self::row::Row;
pub(crate) use self::source::Script;

#[cfg(test)]
mod tests;
