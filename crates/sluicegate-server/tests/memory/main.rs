//! What connections and bodies cost in memory. Each test counts what the whole process has allocated, so one runs at a
//! time, and no others are in this program.
//!
//! The memory that the system sees (`VmRSS`) would be no measure: the allocator keeps pieces, and more of them on some
//! runs than on others.
#![cfg(target_os = "linux")]

mod bodies;
mod idle;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::sync::Mutex;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Held by the test that runs.
static PROCESS: Mutex<()> = Mutex::const_new(());

/// How many bytes the process has allocated and not freed.
fn memory() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}
