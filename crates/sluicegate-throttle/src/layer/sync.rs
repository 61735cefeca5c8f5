//! Locks: those of the standard library, or those of loom, which tries every order in which threads can run.

#[cfg(not(all(test, loom)))]
pub(super) use std::sync::{Mutex, MutexGuard};

#[cfg(all(test, loom))]
pub(super) use loom::sync::{Mutex, MutexGuard};
