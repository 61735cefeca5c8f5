//! How often and how much is allocated: counted exactly, in a program of its own, so that counting
//! does not slow down what the others measure.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tollgate_axum::{Limit, Limiter};
use tollgate_benches::services::{self, App};
use tollgate_benches::{Table, Turns};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TIMES: usize = 10_000;

fn main() {
    let turns = Turns::from_args();
    let columns = ["per decision", "allocations", "bytes"];
    Table::print(&turns, "Allocations of the table", columns, |table| {
        for (name, limiter) in limiters() {
            table.row(name, &counted(|| drop(limiter.take(7_u64).now())));
        }
    });
    print(&turns, "Allocations of the layer, 200", services::served());
    print(&turns, "Allocations of the layer, 429", services::refused());
}

fn limiters() -> [(&'static str, Limiter); 4] {
    let (second, minute) = (Limit::per_second(1_000_000), Limit::per_minute(1_000_000));
    [
        ("one limit", Limiter::new(second)),
        ("one limit, refused", Limiter::new(Limit::per_hour(1))),
        ("three limits", Limiter::new([second, minute, Limit::per_hour(100_000_000)])),
        (
            "a sliding log",
            Limiter::new(Limit::sliding_log(100, second.period().unwrap_or_default())),
        ),
    ]
}

fn print<const N: usize>(turns: &Turns, title: &str, mut apps: [App; N]) {
    Table::print(turns, title, ["per request", "allocations", "bytes"], |table| {
        for app in &mut apps {
            table.row(app.name, &counted(|| app.call()));
        }
    });
}

/// Allocations and their bytes, for each time. Growing in place counts as an allocation.
fn counted(mut step: impl FnMut()) -> [String; 2] {
    step();
    let region = Region::new(ALLOCATOR);
    (0..TIMES).for_each(|_| step());
    let stats = region.change();
    let each = |total: usize| format!("{:.1}", total as f64 / TIMES as f64);
    let grown = stats.bytes_reallocated.max(0) as usize;
    [each(stats.allocations + stats.reallocations), each(stats.bytes_allocated + grown)]
}
