//! How often and how much each limiter allocates. This is counted exactly, in a program of its own, so that counting
//! does not slow down the other benchmarks.

use std::alloc::System;

use sluicegate_axum::{Limit, Limiter};
use sluicegate_benches::services::{self, App, actix, axum, tower};
use sluicegate_benches::{Table, Turns};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of client addresses. Only requests with existing rows are counted.
const PEERS: u32 = 1_000;

fn main() {
    let turns = Turns::from_args();
    // tower's own layer needs a runtime when it is made. No request waits, so nothing runs on it.
    let runtime = services::runtime();
    let _context = runtime.enter();

    let times = if turns.is_measuring() { 10_000 } else { 10 };
    let columns = ["per decision", "allocations", "bytes"];
    Table::print(&turns, "Allocations of the table", columns, |table| {
        for (name, limiter) in limiters() {
            let counted = Counted::of(times, || drop(limiter.take(7_u64).now()));
            table.row(name, &[each(counted.allocations), each(counted.bytes)]);
        }
    });

    let table = |title: &str, baseline, apps: &dyn Fn() -> Vec<App>| {
        compare(&turns, times, title, baseline, apps);
    };
    table("Allocations in axum, 200", axum::IDENTITY, &|| axum::served(PEERS));
    table("Allocations in axum, 429", axum::HANDLER, &|| axum::refused(PEERS));
    table("Allocations in tower alone, 200", tower::IDENTITY, &tower::served);
    table("Allocations in actix-web, 200", actix::IDENTITY, &|| actix::served(PEERS));
    table("Allocations in actix-web, 429", actix::HANDLER, &|| actix::refused(PEERS));
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

fn compare(turns: &Turns, times: usize, title: &str, baseline: usize, apps: &dyn Fn() -> Vec<App>) {
    let columns = ["per request", "allocations", "beyond the baseline", "bytes"];
    Table::print(turns, title, columns, |table| {
        let mut apps = apps();
        let counted: Vec<_> =
            apps.iter_mut().map(|app| Counted::of(times, || app.call())).collect();
        let least = counted[baseline].allocations;
        for (app, Counted { allocations, bytes }) in apps.iter().zip(counted) {
            let beyond = format!("{:+.1}", allocations - least);
            table.row(app.name, &[each(allocations), beyond, each(bytes)]);
        }
    });
}

fn each(number: f64) -> String {
    format!("{number:.1}")
}

/// Allocations and their bytes, for each step. Growing in place counts as an allocation.
struct Counted {
    allocations: f64,
    bytes: f64,
}

impl Counted {
    fn of(times: usize, mut step: impl FnMut()) -> Self {
        step();
        let region = Region::new(ALLOCATOR);
        (0..times).for_each(|_| step());
        let stats = region.change();
        let each = |total: usize| total as f64 / times as f64;
        let grown = stats.bytes_reallocated.max(0) as usize;
        Self {
            allocations: each(stats.allocations + stats.reallocations),
            bytes: each(stats.bytes_allocated + grown),
        }
    }
}
