//! The atomics of the table: the standard library's, or those of loom, which tries every order in which
//! threads can meet.

#[cfg(not(loom))]
pub(super) use std::hint::spin_loop as spin;
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(super) use loom::thread::yield_now as spin;
