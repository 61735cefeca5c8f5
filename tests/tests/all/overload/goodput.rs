//! How much useful work a server does under overload, on a simulated server, by the real scheduler.
//!
//! `cargo xtask bench overload` prints the figures beside those of other ways to bound work.

use sluicegate_tests::overload::{
    ConcurrencyLimit, Contender, Fifo, LoadShed, Throttled, four_classes, run,
};

const CRITICAL_PLUS: usize = 0;
const CRITICAL: usize = 1;
const SHEDDABLE_PLUS: usize = 2;
const SHEDDABLE: usize = 3;

#[test]
fn below_its_capacity_a_server_sheds_next_to_nothing() {
    let report = run(&mut Throttled::default(), &mut four_classes(0.8), 200);
    for class in [CRITICAL_PLUS, CRITICAL] {
        assert!(report.goodput(class) >= 0.9999, "{report:?}");
    }
    for class in [SHEDDABLE_PLUS, SHEDDABLE] {
        assert!(report.goodput(class) >= 0.99, "{report:?}");
    }
}

/// The least critical requests are overtaken by others, and are served before they would be shed.
#[test]
fn at_nine_tenths_of_its_capacity_a_server_sheds_only_what_does_not_fit_into_the_queue() {
    let report = run(&mut Throttled::default(), &mut four_classes(0.9), 200);
    let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
    assert!(sum(&report.served) >= 0.985 * sum(&report.offered), "{report:?}");
    assert!(report.goodput(SHEDDABLE) >= 0.97, "{report:?}");
}

#[test]
fn at_twice_the_load_what_is_critical_is_served() {
    let report = run(&mut Throttled::default(), &mut four_classes(2.0), 200);
    assert!(report.goodput(CRITICAL_PLUS) >= 0.99, "{report:?}");
    assert!(report.goodput(CRITICAL) >= 0.98, "{report:?}");
    assert!(report.useful >= 0.95, "{report:?}");
}

#[test]
fn at_ten_times_the_load_what_is_most_critical_is_served() {
    let report = run(&mut Throttled::default(), &mut four_classes(10.0), 100);
    assert!(report.goodput(CRITICAL_PLUS) >= 0.95, "{report:?}");
    assert!(report.useful >= 0.95, "{report:?}");
}

#[test]
fn other_ways_to_bound_work_do_not_keep_what_is_critical() {
    let critical = |contender: &mut dyn Contender| {
        let report = run(contender, &mut four_classes(2.0), 100);
        report.goodput(CRITICAL_PLUS)
    };
    assert!(critical(&mut Fifo::unbounded()) < 0.1);
    assert!(critical(&mut Fifo::bounded()) < 0.7);
    assert!(critical(&mut ConcurrencyLimit::default()) < 0.7);
    assert!(critical(&mut LoadShed::default()) < 0.7);
}
