//! The layer in process: an axum router with a trivial handler, called without sockets or a runtime.
//!
//! Every time holds the making of the request, the router and the response as well; the second column
//! is what a service costs more than axum with a layer that does nothing.

use tollgate_benches::services::{self, App};
use tollgate_benches::{Contender, Table, Turns};

fn main() {
    let turns = Turns::from_args();
    compare(&turns, "The layer, 200, ns", services::served(), 1);
    compare(&turns, "The layer, 429, ns", services::refused(), 0);
}

fn compare<const N: usize>(turns: &Turns, title: &str, mut apps: [App; N], baseline: usize) {
    let names = apps.each_ref().map(|app| app.name);
    let columns = ["service", "request", "beyond the baseline"];
    Table::print(turns, title, columns, |table| {
        let figures = turns.take(apps.each_mut().map(|app| Contender::new(|| app.call())));
        let least = figures[baseline].median;
        for (name, figure) in names.iter().zip(figures) {
            table.row(name, &[figure.to_string(), format!("{:+.0}", figure.median - least)]);
        }
    });
}
