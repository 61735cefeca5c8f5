//! Goodput by class under overload, on a simulated server with one core: see `tests/goodput/simulation.rs`.
//!
//! `cargo bench -p sluicegate-throttle --bench goodput`

#[path = "../tests/goodput/simulation.rs"]
mod simulation;

use std::time::Duration;

use simulation::{ConcurrencyLimit, Contender, Fifo, Throttle, run};

const SECONDS: u64 = 1_000;

fn main() {
    println!("answers in time of all requests of a class, and useful part of the core, in percent");
    for load in [0.8, 2.0, 10.0] {
        println!(
            "\nload {load}                         CRITICAL_PLUS  CRITICAL  SHEDDABLE_PLUS  SHEDDABLE  useful"
        );
        show("no bound, first in first out", &mut Fifo::unbounded(), load);
        show("42 requests, first in first out", &mut Fifo::bounded(), load);
        show("ConcurrencyLimit of 10", &mut ConcurrencyLimit::new(), load);
        show("load_shed, ConcurrencyLimit 10", &mut ConcurrencyLimit::with_load_shed(), load);
        show("sluicegate-throttle", &mut Throttle::new(), load);
        let codel = |target: u64| {
            Throttle::with(|builder| {
                builder.codel(Duration::from_millis(target), Duration::from_millis(100))
            })
        };
        show("  and CoDel with 5 ms", &mut codel(5), load);
        show("  and CoDel with 50 ms", &mut codel(50), load);
        let mut freshest =
            Throttle::with(|builder| builder.freshest_when_late(Duration::from_millis(100)));
        show("  and freshest first after 100 ms", &mut freshest, load);
        let mut weights = Throttle::with(|builder| builder.weights([8, 4, 2, 1]));
        show("  and weights 8, 4, 2, 1", &mut weights, load);
    }
}

fn show(name: &str, contender: &mut dyn Contender, load: f64) {
    let report = run(contender, load, SECONDS);
    let [a, b, c, d] = [0, 1, 2, 3].map(|class| 100.0 * report.goodput(class));
    let useful = 100.0 * report.useful;
    println!("{name:<35} {a:>10.2} {b:>9.2} {c:>15.2} {d:>10.2} {useful:>7.2}");
}
