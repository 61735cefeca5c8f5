//! The server over the wire: calls of Envoy's rate limit service and requests of HTTP, beside the least that tonic and
//! axum need for an answer, and beside other servers of limits.
//!
//! A server has one thread and, if there is one to spare, a core of its own. The client has another core, and prepares
//! its requests before. All servers take turns, so that ratios are of turns in the same round. Latencies are those at
//! half of a server's own rate, of requests that are sent when they are due, whether the server answers or not.
//!
//! The command is measured if `SLUICEGATE` names it, and throttlecrab-server if `THROTTLECRAB_SERVER` names it:
//! `cargo xtask bench` builds both.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

use sluicegate_benches::quota::{self, Kind, Needs, Sluicegate, Trial};
use sluicegate_benches::remote::Redis;
use sluicegate_benches::wire::Cores;
use sluicegate_benches::{Table, Turns};

const RLS: &str = "Server, rate limit service";

/// The row after the first is the same server once more: the difference between the two is noise.
const RLS_ROWS: [(&str, Kind); 8] = [
    ("tonic, answers OK", Kind::Tonic),
    ("tonic, answers OK, once more", Kind::Tonic),
    ("sluicegate, `Memory`", Kind::Sluicegate),
    ("sluicegate, `Redis`", Kind::SluicegateRedis),
    ("sluicegate in Envoy's place, `Memory`", Kind::Like),
    ("sluicegate in Envoy's place, `Redis`", Kind::LikeRedis),
    ("limitador, in tonic", Kind::Limitador),
    ("throttlecrab-server", Kind::Throttlecrab),
];

const HTTP: &str = "Server, HTTP";

/// With the row of the bare handler that each is compared with.
const HTTP_ROWS: [(&str, Kind, usize); 6] = [
    ("axum, GET", Kind::AxumGet, 0),
    ("sluicegate, `/check`", Kind::Check, 0),
    ("axum, POST of JSON", Kind::AxumPost, 2),
    ("sluicegate, `/json`", Kind::Json, 2),
    ("sluicegate in Envoy's place, `/json`", Kind::JsonLike, 2),
    ("sluicegate, `/v1/take`", Kind::Take, 2),
];

const COMMAND: &str = "Server, the command";

/// Reloads that are timed.
const RELOADS: usize = 5;

/// Bytes in a megabyte.
const MEGA: f64 = 1e6;

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(kind) = quota::asked_for() {
        return quota::serve(kind);
    }
    let turns = Turns::from_args();
    if !turns.is_measuring() {
        return works(&turns);
    }
    let wants_rates = turns.wants(RLS) || turns.wants(HTTP);
    let cores = if wants_rates { Cores::bind() } else { None };
    if wants_rates && cores.is_none() {
        println!("Server and client are not bound to a core each.");
    }
    if turns.wants(RLS) {
        rate_limit_service(&turns, cores)?;
    }
    if turns.wants(HTTP) {
        http(&turns, cores)?;
    }
    match env::var("SLUICEGATE") {
        Ok(program) if turns.wants(COMMAND) => command(&turns, Path::new(&program))?,
        _ => {}
    }
    Ok(())
}

/// Asks each server that needs no other program, to see that it answers.
fn works(turns: &Turns) -> Result<(), Box<dyn Error>> {
    let alone = |kind: &Kind| !counts_in_redis(*kind) && *kind != Kind::Throttlecrab;
    let rls = RLS_ROWS.map(|(_, kind)| kind).into_iter().filter(alone);
    let kinds: Vec<_> = rls.chain(HTTP_ROWS.map(|(_, kind, _)| kind)).collect();
    Trial::of(turns, None, &kinds, &Needs::default()).map(drop)
}

fn rate_limit_service(turns: &Turns, cores: Option<Cores>) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start(cores, None);
    let throttlecrab = env::var("THROTTLECRAB_SERVER").unwrap_or_default();
    let has = |(_, kind): &(&str, Kind)| *kind != Kind::Throttlecrab || !throttlecrab.is_empty();
    let rows: Vec<_> = RLS_ROWS.into_iter().filter(has).collect();
    let kinds: Vec<_> = rows.iter().map(|(_, kind)| *kind).collect();
    let needs = Needs { redis: redis.url(), throttlecrab: throttlecrab.clone() };
    let trial = Trial::of(turns, cores, &kinds, &needs)?;
    let columns = [
        "server",
        "calls a second",
        "of the bare answer's",
        "server's CPU, µs each",
        "p50 at half load, µs",
        "p99 at half load, µs",
    ];
    Table::print(turns, RLS, columns, |table| {
        for (i, (name, _)) in rows.iter().enumerate() {
            let cells = [
                trial.per_second(i).to_string(),
                trial.ratio(i, 0).to_string(),
                trial.server_time(i).to_string(),
                trial.median_latency(i).to_string(),
                trial.p99(i).to_string(),
            ];
            table.row(name, &cells);
        }
    });
    let counted = (0..kinds.len()).filter(|at| counts_in_redis(kinds[*at]));
    let (scripts, calls) = (redis.scripts(), counted.map(|at| trial.asked(at)).sum::<u64>());
    if scripts > calls + calls / 100 {
        return Err(format!("Redis ran {scripts} scripts for {calls} calls").into());
    }
    println!("\nRedis ran {scripts} scripts for {calls} calls: one round trip each.");
    Ok(())
}

fn counts_in_redis(kind: Kind) -> bool {
    matches!(kind, Kind::SluicegateRedis | Kind::LikeRedis)
}

fn http(turns: &Turns, cores: Option<Cores>) -> Result<(), Box<dyn Error>> {
    let kinds = HTTP_ROWS.map(|(_, kind, _)| kind);
    let trial = Trial::of(turns, cores, &kinds, &Needs::default())?;
    let columns = [
        "server",
        "requests a second",
        "of the bare handler's",
        "server's CPU, µs each",
        "p50 at half load, µs",
        "p99 at half load, µs",
    ];
    Table::print(turns, HTTP, columns, |table| {
        for (i, (name, _, base)) in HTTP_ROWS.into_iter().enumerate() {
            let cells = [
                trial.per_second(i).to_string(),
                trial.ratio(i, base).to_string(),
                trial.server_time(i).to_string(),
                trial.median_latency(i).to_string(),
                trial.p99(i).to_string(),
            ];
            table.row(name, &cells);
        }
    });
    Ok(())
}

fn command(turns: &Turns, program: &Path) -> Result<(), Box<dyn Error>> {
    let size = fs::metadata(program)?.len() as f64 / MEGA;
    let idle = Sluicegate::start(program, 10)?;
    let resident = idle.resident().map(|bytes| bytes as f64 / MEGA);
    drop(idle);
    let (mut slowest, mut answered) = (0.0_f64, 0);
    for _ in 0..RELOADS {
        let reloaded = Sluicegate::start(program, 10)?.reload()?;
        slowest = slowest.max(reloaded.took.as_secs_f64() * 1e3);
        answered += reloaded.answered;
    }
    Table::print(turns, COMMAND, ["", "measured", "wanted"], |table| {
        let resident = resident.map_or("–".to_owned(), |resident| format!("{resident:.1}"));
        table.row("size of the program, MB", &[format!("{size:.1}"), "≤ 20".to_owned()]);
        table.row("resident when idle, MB", &[resident, "≤ 50 and the table".to_owned()]);
        let cells = [format!("{slowest:.0}"), "< 1000".to_owned()];
        table.row("reload of 10,000 rules, slowest of 5, ms", &cells);
        table.row("failed calls meanwhile", &["0".to_owned(), "0".to_owned()]);
        table.row("right answers meanwhile", &[answered.to_string(), "> 0".to_owned()]);
    });
    Ok(())
}
