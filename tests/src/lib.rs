//! Tests that more than one crate has to pass: [`conformance`](mod@conformance), for every store.

pub mod conformance;
mod subject;

pub use self::subject::{Subject, answer, block_on, key};
