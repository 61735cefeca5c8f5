//! The Lua scripts, how they are called, and how their answers are read.
//!
//! The scripts repeat [`decide`](sluicegate_core::adapter::decide) number by number. The tests of this module compare
//! the two.
//!
//! Rust is the specification, and Lua mirrors it. The scripts work in doubles. Every intermediate is below
//! 2^53, which limits are checked for when they are made, so both sides compute the same integers. A
//! differential test drives random sequences of every algorithm, option, cost and clock edge through both,
//! in the Lua that is inside of Redis, and demands equal answers and equal rows.
//! `sluicegate_core::adapter::remote` is the seam: the plain numbers that the arithmetic reads of a limit,
//! and an outcome made of the numbers that come back. Only the log, whose row stays in the server, sends
//! its status.
//!
//! One decision is one round trip: a script with its rows as keys, one argument into which all numbers are
//! packed, and an answer of one packed string. Redis parses and copies each argument of a command and each
//! element of an answer on its own, and a number as text has to be printed and read on both sides. Packed,
//! a limit takes a few bytes, and nothing is rounded on the way.
//!
//! There are two scripts for a decision. A script runs from its beginning, so each function that it defines
//! is made anew in every call. Most requests are charged to one plain limit, without a gap, ban, log, queue
//! or wait: `spend.lua` is for them, straight down and without a function. Everything else goes through
//! `take.lua`, which is put together from files, with the part for logs only where a limit has one. Both
//! are held to the same Rust step by the same test.
//!
//! A lease of a plain limit has a script of its own, `lease.lua`. Limits that are carried over are leased by
//! `lease_carried.lua`, which shares the files of `take.lua` that know their rows.
//!
//! Time is the server's, read in the script. No clock of a client is sent, so processes whose clocks are an
//! hour apart agree. A master that is promoted has another clock; where it is behind, the row follows it.
//! Only the manual clock of tests is sent.
//!
//! No library of functions is loaded into the server (`FUNCTION LOAD`): a script needs no right to install
//! anything, and follows the version of the client.

mod call;
pub(crate) mod fleet;
pub(crate) mod lease;
#[cfg(any(feature = "mastership", test))]
pub(crate) mod master;
mod pack;
mod reply;
mod source;

pub(crate) use self::call::{Call, CallBatch, SingleCall, by_hash, in_full, missing};
pub(crate) use self::pack::{Caller, Operation, Row};
pub(crate) use self::reply::Reply;
pub(crate) use self::source::{Script, settling};

#[cfg(test)]
mod tests;
