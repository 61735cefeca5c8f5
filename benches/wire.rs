//! Over the wire: servers in processes of their own, taking turns with the same server without a limit.
//!
//! A server has one thread and, if there is one to spare, a core of its own. The client has another core and keeps
//! sixteen connections, with one request in flight on each. All requests come from one address.

use std::error::Error;

use sluicegate_benches::wire::{self, Cores, Kind, Trial};
use sluicegate_benches::{Table, Turns};

/// The index of the baseline in each table. The row after it is the same server once more: the difference between the
/// two is noise.
const BARE: usize = 0;

const AXUM: [(&str, Kind); 8] = [
    ("axum, no layer", Kind::Axum),
    ("axum, no layer, once more", Kind::Axum),
    ("sluicegate, no fields, no extensions", Kind::AxumSluicegateBare),
    ("sluicegate, as it comes", Kind::AxumSluicegate),
    ("tower_governor", Kind::AxumTowerGovernor),
    ("sluicegate, no body, no fields, all refused", Kind::AxumSluicegateRefusesBare),
    ("sluicegate, as it comes, all refused", Kind::AxumSluicegateRefuses),
    ("tower_governor, all refused", Kind::AxumTowerGovernorRefuses),
];

const ACTIX: [(&str, Kind); 7] = [
    ("actix-web, no middleware", Kind::Actix),
    ("actix-web, no middleware, once more", Kind::Actix),
    ("sluicegate, no fields, no extensions", Kind::ActixSluicegateBare),
    ("sluicegate, as it comes", Kind::ActixSluicegate),
    ("actix-governor", Kind::ActixGovernor),
    ("sluicegate, as it comes, all refused", Kind::ActixSluicegateRefuses),
    ("actix-governor, all refused", Kind::ActixGovernorRefuses),
];

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(kind) = wire::asked_for() {
        return Ok(wire::serve(kind)?);
    }
    let turns = Turns::from_args();
    let cores = turns.is_measuring().then(Cores::bind).flatten();
    if turns.is_measuring() && cores.is_none() {
        println!("Server and client are not bound to a core each.");
    }
    compare(&turns, cores, "Over the wire, axum", &AXUM)?;
    compare(&turns, cores, "Over the wire, actix-web", &ACTIX)
}

fn compare(
    turns: &Turns,
    cores: Option<Cores>,
    title: &str,
    rows: &[(&str, Kind)],
) -> Result<(), Box<dyn Error>> {
    let kinds: Vec<_> = rows.iter().map(|(_, kind)| *kind).collect();
    let Some(trial) = Trial::of(turns, title, cores, &kinds)? else { return Ok(()) };
    let columns = [
        "server",
        "requests a second",
        "of the bare server's",
        "p50, µs",
        "p99, µs",
        "server's CPU, µs each",
        "server busy, %",
    ];
    Table::print(turns, title, columns, |table| {
        for (i, (name, _)) in rows.iter().enumerate() {
            let cells = [
                trial.per_second(i).to_string(),
                trial.ratio(i, BARE).to_string(),
                trial.median_latency(i).to_string(),
                trial.p99(i).to_string(),
                trial.server_time(i).to_string(),
                trial.busy(i).to_string(),
            ];
            table.row(name, &cells);
        }
    });
    Ok(())
}
