//! One service of the layer's tables alone, called over and over, for a profiler:
//!
//! ```sh
//! cargo build --release --package sluicegate-benches --example one
//! perf stat -e instructions:u,cycles:u target/release/examples/one 'axum 200' 'sluicegate, as it comes' 1000000
//! # The same count on a machine that is never quiet, without making the services and other threads:
//! valgrind --tool=callgrind --separate-threads=yes --toggle-collect=sluicegate_benches::services::App::call \
//!     target/release/examples/one 'axum 200' 'sluicegate, as it comes' 12000
//! ```
//!
//! Without arguments it prints the tables and the services that it knows.

use std::env;

use sluicegate_benches::services::{self, App, actix, axum, policies, tower};

/// As in the benchmark of the layer.
const FEW: u32 = 1_000;

/// A table, and how to make its services.
type Group = (&'static str, fn() -> Vec<App>);

const GROUPS: [Group; 6] = [
    ("axum 200", || axum::served(FEW)),
    ("axum 429", || axum::refused(FEW)),
    ("tower 200", tower::served),
    ("policies 200", policies::served),
    ("actix 200", || actix::served(FEW)),
    ("actix 429", || actix::refused(FEW)),
];

fn main() {
    // tower's own layer asks for one when it is made. Nobody waits, so nothing runs on it.
    let runtime = services::runtime();
    let _context = runtime.enter();

    let mut arguments = env::args().skip(1);
    let (table, name) = (arguments.next(), arguments.next());
    let times: u64 = arguments.next().map_or(1, |times| times.parse().expect("a number"));
    let mut is_found = false;
    for (group, apps) in GROUPS {
        if table.as_deref().is_some_and(|table| table != group) {
            continue;
        }
        for mut app in apps() {
            match name.as_deref() {
                None => println!("{group:?} {:?}", app.name),
                Some(name) if name == app.name => {
                    is_found = true;
                    (0..times).for_each(|_| app.call());
                }
                Some(_) => {}
            }
        }
    }
    assert!(is_found || name.is_none(), "no service of that name: call it without arguments");
}
