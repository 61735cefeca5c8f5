//! Overload: how much useful work gets done on simulated servers, whom clients that want more than their share get past, and
//! what the throttle costs while there is no overload.
//!
//! Time is simulated in all tables in percent, so those are the same on every machine.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use sluicegate_benches::services::{self, throttle};
use sluicegate_benches::wire::{self, Cores, Kind};
use sluicegate_benches::{Contender, Pace, Table, Turns};
use sluicegate_tests::overload::adaptive::{Setting, Simulation};
use sluicegate_tests::overload::published::{Aimd, Gradient2, Vegas};
use sluicegate_tests::overload::{
    self as simulated, Clients, ConcurrencyLimit, DEAR, Fifo, Flow, Group, LoadShed, Route,
    Throttled, four_classes, run,
};
use sluicegate_throttle::Class;
use sluicegate_throttle::adaptive::{Algorithm, Bandwidth};
use sluicegate_throttle::scheduler::{Completion, Instruction, Offer, Offered, Running, Scheduler};

fn main() -> io::Result<()> {
    if let Some(kind) = wire::asked_for() {
        return wire::serve(kind);
    }
    let turns = &Turns::from_args();
    for load in [0.8, 0.9, 1.0, 2.0, 10.0] {
        goodput(turns, load);
    }
    attacks(turns);
    adaptive(turns);
    scheduler(turns);
    layer(turns);
    real(turns)
}

/// Simulated seconds.
fn seconds(turns: &Turns, measuring: u64) -> u64 {
    if turns.is_measuring() { measuring } else { 2 }
}

fn goodput(turns: &Turns, load: f64) {
    let title = format!("Overload, simulated, {load} times the load, %");
    let columns =
        ["server", "CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE", "useful CPU"];
    Table::print(turns, &title, columns, |table| {
        let row = |name: &str, contender: &mut dyn simulated::Contender| {
            let report = run(contender, &mut four_classes(load), seconds(turns, 1_000));
            let [a, b, c, d] = [0, 1, 2, 3].map(|class| report.goodput(class));
            let cells = [a, b, c, d, report.useful].map(|part| format!("{:.1}", 100.0 * part));
            table.row(name, &cells);
        };
        row("a queue without a bound", &mut Fifo::unbounded());
        row("a queue of 42 requests", &mut Fifo::bounded());
        row("tower, `ConcurrencyLimit` of 10", &mut ConcurrencyLimit::default());
        row("tower, `LoadShed` around that", &mut LoadShed::default());
        row("sluicegate-throttle, 0.2 s of work", &mut Throttled::default());
        let codel = |target| {
            Throttled::with(|builder| {
                builder.codel(Duration::from_millis(target), Duration::from_millis(100))
            })
        };
        row("sluicegate-throttle, CoDel of 50 ms", &mut codel(50));
        let late = Duration::from_millis(100);
        let mut freshest = Throttled::with(|builder| builder.freshest_when_late(late));
        row("sluicegate-throttle, freshest first", &mut freshest);
        let mut weights = Throttled::with(|builder| builder.weights([8, 4, 2, 1]));
        row("sluicegate-throttle, weights 8 4 2 1", &mut weights);
    });
}

/// Four clients want 40 % of the core, and a fifth one five times the core, all in one class.
fn attacks(turns: &Turns) {
    let columns = ["the fifth client", "a queue of 42", "tower, `LoadShed`", "sluicegate-throttle"];
    Table::print(turns, "Overload, simulated, answers to honest clients, %", columns, |table| {
        let row = |name: &str, attacker: Group| {
            let honest = Group { flow: Flow::Many(1, 4), ..Group::new(0.4) };
            let beside = |contender: &mut dyn simulated::Contender| {
                let mut clients = Clients::new([honest.clone(), attacker.clone()]);
                let report = run(contender, &mut clients, seconds(turns, 200));
                format!("{:.1}", 100.0 * report.goodput(0))
            };
            let cells = [
                beside(&mut Fifo::bounded()),
                beside(&mut LoadShed::default()),
                beside(&mut Throttled::default()),
            ];
            table.row(name, &cells);
        };
        let fifth = Group { flow: Flow::One(1_000), ..Group::new(5.0) };
        let dear = Group { costs: vec![DEAR], ..fifth.clone() };
        row("sends the same requests, only more", fifth.clone());
        row("sends dear ones on the same route", dear.clone());
        row("sends dear ones on a new route each", Group { route: Route::Minted, ..dear.clone() });
        let hangs_up = Some(DEAR - 1);
        row("hangs up before each answer", Group { route: Route::One(2), hangs_up, ..dear });
        row("has a new name for each request", Group { flow: Flow::Minted, ..fifth });
    });
}

const SERVICE: Duration = Duration::from_millis(20);

fn adaptive(turns: &Turns) {
    let columns = [
        "algorithm",
        "halved (10): mean limit",
        "p99, times the unloaded",
        "an hour (20): mean limit",
        "highest limit",
        "throughput, %",
        "503 below half load",
    ];
    Table::print(turns, "Overload, simulated, adaptive concurrency", columns, |table| {
        adaptive_row(turns, table, "sluicegate-throttle, `Bandwidth`", Bandwidth::default);
        adaptive_row(turns, table, "Vegas, as published", Vegas::default);
        adaptive_row(turns, table, "Gradient2, as published", Gradient2::default);
        adaptive_row(turns, table, "AIMD, as published", Aimd::default);
    });
}

fn adaptive_row<A: Algorithm + 'static>(
    turns: &Turns,
    table: &Table,
    name: &str,
    algorithm: impl Fn() -> A,
) {
    let time = |measuring| Duration::from_secs(seconds(turns, measuring));
    let setting = Setting::new(20.0, SERVICE, 1.2);
    let mut simulation = Simulation::new(1, algorithm());
    simulation.run(setting, time(30));
    let half = Setting { cores: 10.0, ..setting };
    simulation.run(half, time(5));
    let mut halved = simulation.run(half, time(5));

    let mut simulation = Simulation::new(1, algorithm());
    simulation.run(setting, time(60));
    let hour = simulation.run(setting, time(3_600));
    // In a second: what twenty cores do.
    let throughput = hour.ended as f64 / time(3_600).as_secs_f64() / 1_000.0;

    let mut simulation = Simulation::new(1, algorithm());
    let quiet = simulation.run(Setting::new(50.0, SERVICE, 0.5), time(805));
    let cells = [
        format!("{:.1}", halved.mean_limit),
        // Without any load, the 99th percentile is one and a half times the mean.
        format!("{:.2}", halved.p99() / (1.5 * half.service)),
        format!("{:.1}", hour.mean_limit),
        hour.max_limit.to_string(),
        format!("{:.1}", 100.0 * throughput),
        format!("{} of {}", quiet.shed, quiet.offered),
    ];
    table.row(name, &cells);
}

/// Requests that wait while the scheduler is measured.
const QUEUED: u64 = 10_000;

fn scheduler(turns: &Turns) {
    let title = "The scheduler of the throttle, ns";
    Table::print(turns, title, ["queue", "offer and done"], |table| {
        let one = |name, contender| table.row(name, &turns.take([contender]));
        one("empty", empty());
        one("10,000 queued, one flow", with_queued(1));
        one("10,000 queued, 64 flows", with_queued(64));
        one("10,000 queued, 10,000 flows", with_queued(10_000));
    });
}

fn request(number: u64, flows: u64) -> Offer {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    Offer {
        class: Class::at((mixed % 4) as u8),
        flow: (mixed % flows).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        cost: 1 + mixed % 20,
        deadline: Some(u64::MAX),
        partition: None,
        key: Some((mixed % 20).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    }
}

fn started(offered: Offered) -> Running {
    match offered {
        Offered::Start(running) => running,
        other => unreachable!("nothing else runs: {other:?}"),
    }
}

fn empty() -> Contender<'static> {
    let builder = Scheduler::builder().in_flight(1).queue(QUEUED);
    let mut scheduler = builder.build().expect("it works");
    let (mut out, mut number) = (Vec::new(), 0);
    Contender::new(move || {
        number += 1;
        let running = started(scheduler.offer(number, request(number, 64), &mut out));
        scheduler.done(number, running, Some(5), Completion::Success, &mut out);
    })
}

/// Each step offers a request, and ends one, which starts another: as many stay queued.
fn with_queued(flows: u64) -> Contender<'static> {
    let builder = Scheduler::builder().in_flight(1).queue(1 << 40);
    let mut scheduler = builder.build().expect("it works");
    let (mut out, mut number) = (Vec::new(), 0);
    let mut running = Some(started(scheduler.offer(0, request(0, flows), &mut out)));
    while (scheduler.len() as u64) < QUEUED {
        number += 1;
        black_box(scheduler.offer(0, request(number, flows), &mut out));
    }
    Contender::new(move || {
        number += 1;
        black_box(scheduler.offer(number, request(number, flows), &mut out));
        let ended = running.take().expect("one runs");
        scheduler.done(number, ended, Some(5), Completion::Success, &mut out);
        let Some(Instruction::Start(_, next)) = out.pop() else { unreachable!("one starts") };
        running = Some(next);
    })
}

/// Nothing waits, and the time of polls is measured.
fn layer(turns: &Turns) {
    let runtime = services::runtime();
    let _context = runtime.enter();
    let title = "The throttle in axum, ns";
    Table::print(turns, title, ["service", "request", "beyond the baseline"], |table| {
        let mut apps = throttle::served();
        let names: Vec<_> = apps.iter().map(|app| app.name).collect();
        let contenders = apps.iter_mut().map(|app| Contender::new(|| app.call())).collect();
        let rounds = turns.rounds(contenders, Pace::USUAL);
        for (i, name) in names.into_iter().enumerate() {
            let difference = rounds.difference(i, throttle::IDENTITY).to_string();
            table.row(name, &[rounds.figure(i).to_string(), difference]);
        }
    });
}

/// Real servers of one thread and a core of their own, and clients on another core.
fn real(turns: &Turns) -> io::Result<()> {
    let cores = turns.is_measuring().then(Cores::bind).flatten();
    let time = Duration::from_millis(if turns.is_measuring() { 8_000 } else { 100 });
    let title = "Overload, a real axum server, %";
    let columns = ["load, server", "CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"];
    let mut outcome = Ok(());
    Table::print(turns, title, columns, |table| {
        for load in [0.8, 2.0, 10.0] {
            for (name, kind) in
                [("bare", Kind::AxumBusy), ("behind the throttle", Kind::AxumBusyThrottle)]
            {
                match wire::goodput(kind, cores, load, time) {
                    Ok(parts) => {
                        let cells = parts.map(|part| format!("{:.1}", 100.0 * part));
                        table.row(&format!("{load} times, {name}"), &cells);
                    }
                    Err(error) => outcome = Err(error),
                }
            }
        }
    });
    outcome
}
