mod process;

use fastrand::Rng;
use sluicegate_core::Limit;
use sluicegate_core::adapter::Receipt;
use sluicegate_core::key::KeyBuf;
use sluicegate_core::limit::Verdict;

use self::process::Process;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn of(limit: Limit, cost: u64) -> Charge {
    Charge::of(limit, KeyBuf::of("alice"), cost)
}

/// Limits that are remembered, and then limits that are not. Some share their rows.
fn limits() -> [Limit; 15] {
    [
        Limit::per_second(3),
        Limit::per_second(3).burst(2),
        Limit::per(7, SECOND * 3).burst(5),
        Limit::per_day(40_000_000).burst(3),
        Limit::per_second(5).refill(2, SECOND / 2),
        Limit::leaky_bucket(4, SECOND).queue(2),
        Limit::fixed_window(3, SECOND),
        Limit::fixed_window(4, SECOND * 2).from_first(),
        Limit::sliding_window(4, SECOND).named("shared"),
        Limit::sliding_window(6, SECOND).named("shared"),
        Limit::sliding_window(5, SECOND).named("shared").count_refused(),
        Limit::sliding_log(3, SECOND),
        Limit::per_second(2).ban(SECOND),
        Limit::per_second(9).min_gap(SECOND / 20),
        Limit::concurrent(3),
    ]
}

/// A charge to some of these limits.
fn charge(random: &mut Rng, limits: &[Limit]) -> Charge {
    let mut charge = Charge::new();
    for _ in 0..[1, 1, 1, 2, 3][random.usize(..5)] {
        let limit = limits[random.usize(..limits.len())];
        // Two different limits with one name cannot be in one charge.
        let key = KeyBuf::of(u64::from(random.bool()));
        let _ = charge.add(limit, key, random.u64(..4));
    }
    if random.u8(..8) == 0 { charge.patient(SECOND / 4) } else { charge }
}

#[test]
fn what_is_remembered_is_what_the_server_would_say() {
    let mut recalled = 0;
    for seed in 0..150 {
        let mut random = Rng::with_seed(seed);
        // Some rows have to make room for others.
        let mut process = Process::new([4, 64][random.usize(..2)], SECOND * random.u32(1..4));
        let limits = random.choose_multiple(limits(), 4);
        let mut paid: Vec<(Charge, Vec<Receipt>)> = Vec::new();
        for _ in 0..1_000 {
            match random.u8(..16) {
                0 => process.reset(&charge(&mut random, &limits)),
                1 if !paid.is_empty() => {
                    let (charge, receipts) = paid.swap_remove(random.usize(..paid.len()));
                    let spent = random.u64(..5);
                    for (debit, receipt) in charge.debits().zip(&receipts) {
                        process.settle(debit, receipt, spent);
                    }
                }
                2..4 => process.clock.advance(Duration::from_micros(1 << random.u32(..20))),
                _ => {
                    let charge = charge(&mut random, &limits);
                    if let Some(refusal) = process.refusals.recall(&charge) {
                        recalled += 1;
                        let expected = process.server.expected(&charge);
                        assert_eq!(refusal.decision(&charge), expected.decision(&charge));
                        continue;
                    }
                    let outcome = process.take(&charge);
                    if outcome.is_admitted() {
                        paid.push((charge, outcome.receipts().collect()));
                    }
                }
            }
        }
    }
    assert!(recalled > 7_000, "only {recalled} were remembered");
}

/// At any distance from the server, and at any speed of its answers.
#[test]
fn no_request_is_refused_that_the_server_would_admit_and_retry_after_is_never_too_short() {
    let mut recalled = 0;
    for seed in 0..4_000 {
        let mut random = Rng::with_seed(seed);
        let mut process = Process::new(64, Duration::MAX);
        let limit = limits()[random.usize(..10)];
        let charge = of(limit, random.u64(1..3));
        let mut way = || Duration::from_micros(random.u64(..20_000));
        for _ in 0..12 {
            if let Some(refusal) = process.refusals.recall(&charge) {
                recalled += 1;
                let now = process.server.expected(&charge);
                assert!(!now.is_admitted(), "{limit}");
                assert!(refusal.retry_after() >= now.retry_after(), "{limit}");
                process.clock.advance(way());
            } else {
                process.ask(&charge, [way(), way()]);
            }
        }
    }
    assert!(recalled > 10_000, "only {recalled} were remembered");
}

/// The server decides when the call arrives, and the answer takes this long. Its clock may run a little faster.
#[test]
fn the_server_is_called_at_the_moment_at_which_it_would_admit() {
    let mut process = Process::new(16, Duration::MAX);
    let charge = of(Limit::per_second(1), 1);
    let (way, drift, tick) = (SECOND / 100, SECOND / 5_000, Duration::from_micros(1));
    process.ask(&charge, [Duration::ZERO; 2]);
    process.ask(&charge, [Duration::ZERO, way]);
    process.clock.advance(SECOND - way - drift - tick);
    assert!(process.refusals.recall(&charge).is_some());
    process.clock.advance(drift + tick);
    assert_eq!(process.refusals.recall(&charge), None);
    assert!(process.take(&charge).is_admitted());
}

#[test]
fn a_flood_calls_once_for_each_admitted_request_and_once_more() {
    let mut process = Process::new(16, Duration::MAX);
    let charge = of(Limit::per_second(10).burst(1), 1);
    let mut admitted = 0;
    // Two seconds, with 100 attempts in each millisecond.
    for _ in 0..2_000 {
        for _ in 0..100 {
            admitted += u64::from(process.take(&charge).is_admitted());
        }
        process.clock.advance(SECOND / 1_000);
    }
    assert_eq!((admitted, process.asked), (20, 40));
}

#[test]
fn a_greater_cost_is_refused_for_longer_without_asking() {
    let mut process = Process::new(16, Duration::MAX);
    process.take(&of(Limit::per_second(1).burst(10), 10));
    process.take(&of(Limit::per_second(1).burst(10), 2));
    let retry_after = |cost| {
        let refusal = process.refusals.recall(&of(Limit::per_second(1).burst(10), cost));
        refusal.expect("the row is remembered").retry_after()
    };
    assert_eq!(retry_after(1), Some(SECOND));
    assert_eq!(retry_after(7), Some(SECOND * 7));
    let never = process.refusals.recall(&of(Limit::per_second(1).burst(10), 11));
    assert_eq!(never, None, "a refusal for ever has no end");
}

#[test]
fn a_row_is_read_again_after_the_longest_time() {
    let mut process = Process::new(16, SECOND);
    let charge = of(Limit::fixed_window(1, SECOND * 3_600).from_first(), 1);
    process.take(&charge);
    process.take(&charge);
    // Another process gives back.
    process.server.states.clear();
    process.clock.advance(SECOND - Duration::from_micros(1));
    assert!(!process.take(&charge).is_admitted());
    process.clock.advance(Duration::from_micros(1));
    assert!(process.take(&charge).is_admitted());
}

/// The server's clock may have gained 17.28 s in a day.
#[test]
fn a_row_of_long_ago_is_believed_as_far_as_clocks_run_alike() {
    let day = SECOND * 86_400;
    for (left, is_believed) in [(17, false), (18, true)] {
        let mut process = Process::new(16, Duration::MAX);
        let charge = of(Limit::fixed_window(1, day + SECOND * left).from_first(), 1);
        process.take(&charge);
        process.take(&charge);
        process.clock.advance(day);
        assert_eq!(process.refusals.recall(&charge).is_some(), is_believed, "{left} s");
    }
}

#[test]
fn a_limit_that_was_raised_is_decided_by_the_server() {
    let mut process = Process::new(16, Duration::MAX);
    let limit = |count| Limit::sliding_window(count, SECOND).named("api");
    process.take(&of(limit(1), 1));
    process.take(&of(limit(1), 1));
    assert_eq!(process.refusals.recall(&of(limit(2), 1)), None);
    assert!(process.take(&of(limit(2), 1)).is_admitted());
}

#[test]
fn an_answer_from_before_a_change_is_not_remembered() {
    let mut process = Process::new(16, Duration::MAX);
    let charge = of(Limit::per_day(1), 1);
    let debit = charge.debits().next().expect("one");
    process.take(&charge);
    process.take(&charge);
    let early = process.refusals.observe(Operation::Take, &charge);
    assert!(process.refusals.recall(&charge).is_some());
    let change = process.refusals.invalidate(debit);
    assert_eq!(process.refusals.recall(&charge), None);
    let late = process.refusals.observe(Operation::Take, &charge);
    let refused = process.server.take(&charge);
    let reply = process.server.reply(&charge, &refused);
    drop(change);
    for mut watch in [early, late] {
        watch.sent(process.epochs.current(0));
        watch.learn(&charge, Some(&reply));
        assert_eq!(process.refusals.recall(&charge), None);
    }
    process.take(&charge);
    assert!(process.refusals.recall(&charge).is_some());
}

#[test]
fn what_only_others_can_end_or_a_refusal_changes_is_not_remembered() {
    let mut process = Process::new(16, Duration::MAX);
    for limit in &limits()[10..] {
        for _ in 0..20 {
            process.take(&of(*limit, 1));
            assert_eq!(process.refusals.recall(&of(*limit, 1)), None, "{limit}");
        }
    }
    let patient = of(limits()[0], 3).patient(SECOND);
    for _ in 0..20 {
        assert!(
            !matches!(process.take(&patient).verdict(), Verdict::Admit { wait } if wait > SECOND)
        );
        assert_eq!(process.refusals.recall(&patient), None);
    }
}

#[test]
fn a_server_that_may_have_restarted_is_called() {
    let mut process = Process::new(16, Duration::MAX);
    let charge = of(Limit::per_day(1), 1);
    process.take(&charge);
    process.take(&charge);
    process.server.states.clear();
    assert!(!process.take(&charge).is_admitted());
    process.epochs.advance(1);
    assert!(!process.take(&charge).is_admitted(), "the server has restarted");
    process.epochs.advance(0);
    assert!(process.take(&charge).is_admitted());
}

#[test]
fn a_store_without_rows_remembers_nothing() {
    for (rows, longest) in [(0, SECOND), (16, Duration::ZERO)] {
        let mut process = Process::new(rows, longest);
        for _ in 0..5 {
            process.take(&of(Limit::per_day(1), 1));
        }
        assert_eq!(process.asked, 5);
    }
}
