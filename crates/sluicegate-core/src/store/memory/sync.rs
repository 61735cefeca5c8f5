//! Atomics and waiting: from the standard library, or from loom, which tries every order in which threads can run.

#[cfg(not(all(test, loom)))]
pub(super) use std::hint::spin_loop as spin;
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(all(test, loom)))]
pub(super) use std::thread::{park_timeout, yield_now};

#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(all(test, loom))]
pub(super) use loom::thread::{yield_now, yield_now as spin};

/// Time does not pass in loom. A thread that sleeps lets others run.
#[cfg(all(test, loom))]
pub(super) fn park_timeout(_: std::time::Duration) {
    yield_now();
}
