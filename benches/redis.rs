//! Limiters in Redis: decisions a second over one connection, compared with what the same client can do at most.
//!
//! The server has a core of its own, if there is one to spare, and the client another, with one thread. A fixed
//! number of requests is in flight on one connection, and each is followed by the next as soon as it is answered. No
//! request is refused, unless the name says so, and each finds and writes the row of its key. Ratios are of turns in
//! the same round. redis-cell takes part if `REDIS_CELL` names its module. `cargo xtask bench` builds its release
//! 0.2.2, because as a dependency it would bring along a crate with a known vulnerability.

use std::env;
use std::error::Error;
use std::time::Duration;

use sluicegate_axum::Limit;
use sluicegate_benches::remote::{
    ActixExtensible, Cell, Contender, Gcra, Increment, LimitadorScripts, OneLine, Redis,
    Sluicegate, Time, Trial, limit,
};
use sluicegate_benches::wire::Cores;
use sluicegate_benches::{Table, Turns, services};
use sluicegate_redis::Leased;
use tokio::runtime::Runtime;

const IN_FLIGHT: [usize; 4] = [1, 16, 64, 256];

/// The index of the one-line script among the contenders.
const YARDSTICK: usize = 1;

const TRAFFIC: [(&str, usize); 2] = [("many keys", 10_000), ("one hot key", 1)];

type Cells = fn(&Trial, usize) -> Vec<String>;

const TABLES: [(&str, Cells); 6] = [
    ("decisions a second", Trial::per_second),
    ("of the bare script's decisions", |trial, i| trial.ratios(i, YARDSTICK)),
    ("p50, µs", Trial::medians),
    ("p99, µs", Trial::p99s),
    ("server's CPU, µs each", Trial::server_times),
    ("client's CPU, µs each", Trial::client_times),
];

fn main() -> Result<(), Box<dyn Error>> {
    let turns = Turns::from_args();
    let wanted = |traffic: &str| TABLES.iter().any(|(what, _)| turns.wants(&title(traffic, what)));
    if !TRAFFIC.iter().any(|(traffic, _)| wanted(traffic)) {
        return Ok(());
    }
    let cores = turns.is_measuring().then(Cores::bind).flatten();
    let module = env::var("REDIS_CELL").ok();
    let server = Redis::start(cores, module.as_deref());
    let runtime = services::runtime();
    let contenders = contenders(&runtime, &server, module.is_some())?;
    for (traffic, keys) in TRAFFIC {
        if wanted(traffic) {
            let trial = Trial::of(&turns, &server, &contenders, keys, &IN_FLIGHT);
            TABLES.iter().for_each(|(what, cells)| {
                let cells = |i| cells(&trial, i);
                print(&turns, &title(traffic, what), &contenders, cells);
            });
        }
    }
    Ok(())
}

fn title(traffic: &str, what: &str) -> String {
    format!("Redis, {traffic}, {what}")
}

fn print(
    turns: &Turns,
    title: &str,
    contenders: &[Contender<'_>],
    cells: impl Fn(usize) -> Vec<String>,
) {
    let columns = ["in flight", "1", "16", "64", "256"];
    Table::print(turns, title, columns, |table| {
        for (i, contender) in contenders.iter().enumerate() {
            table.row(contender.name(), &cells(i));
        }
    });
}

/// Each contender has a connection of its own.
fn contenders<'a>(
    runtime: &'a Runtime,
    server: &Redis,
    has_cell: bool,
) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let ours = || {
        let builder = sluicegate_redis::Redis::builder().url(&server.url());
        // Long deadlines, in case the machine is busy with something else.
        let _entered = runtime.enter();
        builder.deadline(Duration::from_secs(5))
    };
    let scarce = Limit::per_day(1);
    let remembering = ours().remember_refusals(16_384, Duration::MAX).build()?;
    let leased = Leased::new(ours().build()?, 1..=1_000);
    let wire = || runtime.block_on(server.connection());
    let one_line = runtime.block_on(OneLine::new(wire()));
    let by_client = runtime.block_on(Gcra::new(wire(), Time::Client));
    let by_server = runtime.block_on(Gcra::new(wire(), Time::Server));
    let limitador = runtime.block_on(LimitadorScripts::new(wire()));
    let actix = runtime.block_on(ActixExtensible::connect(&server.url()))?;
    let admits = true;
    let mut contenders = vec![
        Contender::new("bare `INCR`", runtime, Increment(wire()), admits),
        Contender::new("bare script of one line", runtime, one_line, admits),
        Contender::new(
            "sluicegate `Redis`",
            runtime,
            Sluicegate::new(ours().build()?, limit()),
            admits,
        ),
        Contender::new(
            "sluicegate `Redis`, refused",
            runtime,
            Sluicegate::new(ours().build()?, scarce),
            !admits,
        ),
        Contender::new(
            "sluicegate `Redis`, refusals remembered",
            runtime,
            Sluicegate::new(remembering, scarce),
            !admits,
        ),
        Contender::new("sluicegate `Leased`", runtime, Sluicegate::new(leased, limit()), admits),
        Contender::new("GCRA script, client's time", runtime, by_client, admits),
        Contender::new("GCRA script, server's time", runtime, by_server, admits),
        Contender::new("limitador, its scripts", runtime, limitador, admits),
        Contender::new("actix-extensible-rate-limit", runtime, actix, admits),
    ];
    if has_cell {
        contenders.push(Contender::new("redis-cell", runtime, Cell(wire()), admits));
    }
    Ok(contenders)
}
