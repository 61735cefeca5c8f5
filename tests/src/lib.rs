//! Tests that more than one crate has to pass: [`conformance`](mod@conformance), for every store; and
//! [`servers`] for those that need one.

pub mod conformance;
pub mod operations;
#[cfg(unix)]
pub mod servers;
mod subject;

pub use self::subject::{Subject, answer, block_on, key};

/// The examples of the README, compiled and run as they are written there.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The lines of code for each proxy.
#[cfg(doctest)]
#[doc = include_str!("../../docs/proxies.md")]
pub struct Proxies;

/// The recipes, compiled and run as they stand there.
#[cfg(doctest)]
#[doc = include_str!("../../docs/recipes.md")]
pub struct Recipes;
