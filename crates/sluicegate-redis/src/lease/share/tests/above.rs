//! Several processes that together ask for more than the limit: they ask the server rarely, and refuse what it would.

use super::fleet::Fleet;
use super::*;

/// Microseconds.
const SECOND: u64 = 1_000_000;

/// The results of `seconds` of requests of several processes at `percent` of a limit that nobody has used before.
struct Run {
    requests: u64,
    /// Refusals with leases, and of the same requests without.
    refused: u64,
    refused_without: u64,
    questions: u64,
}

fn run(limit: Limit, parts: &[u64], percent: u64, seconds: [u64; 2]) -> Run {
    let period = limit.period().expect("a rate").as_micros() as u64;
    let mean = 100 * period / (limit.count() * percent);
    let [leased, plain] = [false, true].map(|is_plain| {
        let mut fleet = Fleet::of(limit, parts.len(), 1..=1_000, 7, 300);
        fleet.is_plain = is_plain;
        let [warm_up, seconds] = seconds;
        fleet.even(parts, mean, 1, warm_up * SECOND);
        fleet.forget();
        fleet.even(parts, mean, 1, seconds * SECOND);
        if !is_plain {
            fleet.never_exceeds_the_limit();
            fleet.is_accounted_for();
        }
        let [requests, refused, _] = fleet.came();
        (requests, refused, fleet.questions())
    });
    Run { requests: leased.0, refused: leased.1, refused_without: plain.1, questions: leased.2 }
}

/// Parts of a hundred thousand requests.
fn of(run: &Run, count: u64) -> u64 {
    count * 100_000 / run.requests
}

/// From the first request on, and later.
const WHEN: [[u64; 2]; 2] = [[0, 17], [15, 8]];

#[test]
fn at_its_limit_a_key_costs_few_questions() {
    for processes in [1, 2, 4, 8, 16] {
        for percent in [110, 125, 150, 300, 1_000] {
            for when in WHEN {
                let run = run(Limit::per_second(1_000), &vec![1; processes], percent, when);
                let questions = of(&run, run.questions);
                let most = if percent == 110 || percent == 125 { 6_000 } else { 5_000 };
                assert!(questions <= most, "{processes} at {percent} %, {when:?}: {questions}");
            }
        }
    }
}

/// The same requests come to both, so what differs is due to leases.
#[test]
fn at_its_limit_a_key_is_refused_as_often_as_without_leases() {
    for processes in [4, 8, 16] {
        for percent in [110, 125, 150] {
            let run = |when| run(Limit::per_second(1_000), &vec![1; processes], percent, when);
            let later = run([15, 20]);
            let more = later.refused.saturating_sub(later.refused_without);
            let case = format!("{processes} at {percent} %");
            assert!(of(&later, more) <= 500, "{case}: {more} more than without");
            // Once, each process builds up a stock, which is not lost.
            let first = run([0, 17]);
            let stock = first.refused.saturating_sub(first.refused_without);
            assert!(stock <= STOCK * processes as u64, "{case}: {stock} more than without");
        }
    }
}

/// How many tokens a process holds when it begins to be short, and what others fill the bucket with for it.
const STOCK: u64 = 40;

#[test]
fn below_its_limit_a_key_costs_few_questions() {
    for (processes, most) in [(1, 2_000), (2, 3_000), (4, 4_000)] {
        for percent in [50, 80, 95] {
            let run = run(Limit::per_second(1_000), &vec![1; processes], percent, WHEN[0]);
            let questions = of(&run, run.questions);
            assert!(questions <= most, "{processes} at {percent} %: {questions}");
            assert_eq!((run.refused, run.refused_without), (0, 0), "{processes} at {percent} %");
        }
    }
}
