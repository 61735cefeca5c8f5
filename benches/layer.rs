//! The layer in process: services with a trivial handler, called without sockets.
//!
//! Every time includes making the request, the service and the response. The second column is what a service costs
//! more than one with a layer that does nothing; or, if all requests are refused, than a handler that refuses by
//! itself. It is the median of the differences within a round.

use sluicegate_benches::services::{self, App, actix, axum, policies, tower};
use sluicegate_benches::{Contender, Pace, Table, Turns};

/// Rows for this many addresses stay in the caches,
const FEW: u32 = 1_000;
/// and rows for this many mostly do not.
const MANY: u32 = 100_000;

fn main() {
    let turns = &Turns::from_args();
    // tower's own layer needs a runtime when it is made. No request waits, so nothing runs on it.
    let runtime = services::runtime();
    let _context = runtime.enter();
    let many = if turns.is_measuring() { MANY } else { FEW };

    let group = Group { turns, name: "axum", notes: axum::NOTES };
    group.table("200, 1,000 addresses", axum::IDENTITY, || axum::served(FEW));
    group.table("429, 1,000 addresses", axum::HANDLER, || axum::refused(FEW));
    group.table("200, 100,000 addresses", axum::IDENTITY, || axum::served_without_fields(many));
    group.table("429, 100,000 addresses", axum::HANDLER, || axum::refused_without_body(many));

    let group = Group { turns, name: "tower alone", notes: tower::NOTES };
    group.table("200, one limit for all", tower::IDENTITY, tower::served);

    let group = Group { turns, name: "tower alone", notes: policies::NOTES };
    group.table("200, policies", policies::PLAIN, policies::served);

    let group = Group { turns, name: "actix-web", notes: actix::NOTES };
    group.table("200, 1,000 addresses", actix::IDENTITY, || actix::served(FEW));
    group.table("429, 1,000 addresses", actix::HANDLER, || actix::refused(FEW));
}

/// The tables of one framework.
struct Group<'a> {
    turns: &'a Turns,
    name: &'static str,
    notes: &'static str,
}

impl Group<'_> {
    fn table(&self, title: &str, baseline: usize, apps: impl FnOnce() -> Vec<App>) {
        let Self { turns, name, notes } = self;
        let title = format!("The layer in {name}, {title}, ns");
        Table::print(turns, &title, ["service", "request", "beyond the baseline"], |table| {
            let mut apps = apps();
            let names: Vec<_> = apps.iter().map(|app| app.name).collect();
            let contenders = apps.iter_mut().map(|app| Contender::new(|| app.call())).collect();
            let rounds = turns.rounds(contenders, Pace::USUAL);
            for (i, name) in names.into_iter().enumerate() {
                let difference = rounds.difference(i, baseline).to_string();
                table.row(name, &[rounds.figure(i).to_string(), difference]);
            }
            println!("\n{notes}");
        });
    }
}
