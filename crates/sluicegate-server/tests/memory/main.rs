//! What connections and bodies cost in memory. Each test counts what the whole process has allocated, so one runs at a
//! time, and no others are in this program.
//!
//! The memory that the system sees (`VmRSS`) would be no measure: the allocator keeps pieces, and more of them on some
//! runs than on others.
#![cfg(target_os = "linux")]

mod bodies;
mod idle;

use std::alloc::System;
use std::sync::{Mutex, PoisonError};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Runs a test while no other one runs. Its runtime has ended before the next one begins, so that nothing which it left
/// behind is counted there.
fn alone(test: impl Future<Output = ()>) {
    static PROCESS: Mutex<()> = Mutex::new(());
    let _held = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(test);
}

/// How many bytes the process has allocated and not freed.
fn memory() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}
