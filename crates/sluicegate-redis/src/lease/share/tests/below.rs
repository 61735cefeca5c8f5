//! Several processes that together ask for less than the limit: no request is refused, and hardly any waits.

use super::fleet::Fleet;
use super::*;

/// Microseconds.
const SECOND: u64 = 1_000_000;

/// The requests of each process in a hundredth of the total, and the total as a part of the limit.
struct Load {
    parts: Vec<u64>,
    percent: u64,
    /// How many come at once.
    together: u64,
}

impl Load {
    fn even(processes: usize, percent: u64) -> Self {
        Self { parts: vec![1; processes], percent, together: 1 }
    }
}

/// The results of some seconds of that load, spread over time at random: how many requests came, how many were
/// refused, and how many waited.
fn run(limit: Limit, batch: RangeInclusive<u64>, load: &Load, seconds: u64) -> [u64; 3] {
    let rate = limit.count() * SECOND / limit.period().expect("a rate").as_micros() as u64;
    let mut fleet = Fleet::of(limit, load.parts.len(), batch, 7, 300);
    let mean = SECOND * 100 * load.together / (rate * load.percent);
    // Until every process has the tokens that it needs.
    fleet.even(&load.parts, mean, load.together, SECOND);
    fleet.forget();
    fleet.even(&load.parts, mean, load.together, seconds * SECOND);
    fleet.never_exceeds_the_limit();
    fleet.is_accounted_for();
    fleet.came()
}

fn assert_well(case: &str, [requests, refused, waited]: [u64; 3]) {
    assert!(refused * 1_000 <= requests, "{case}: {refused} of {requests} are refused");
    assert!(waited * 20 <= requests, "{case}: {waited} of {requests} wait");
}

#[test]
fn below_the_limit_no_request_is_refused() {
    let limit = Limit::per_second(1_000);
    for processes in [1, 2, 4, 8, 16] {
        for percent in [50, 82, 90, 95, 99] {
            let came = run(limit, 1..=1_000, &Load::even(processes, percent), 8);
            assert_well(&format!("{processes} processes at {percent} %"), came);
        }
    }
}

#[test]
fn below_the_limit_one_process_may_do_most_of_the_work() {
    let limit = Limit::per_second(1_000);
    for parts in [vec![97, 1, 1, 1], vec![50, 30, 15, 5], vec![60, 5, 5, 5, 5, 5, 5, 5, 5]] {
        for percent in [50, 82, 95] {
            let load = Load { parts: parts.clone(), percent, together: 1 };
            let [requests, refused, _] = run(limit, 1..=1_000, &load, 8);
            assert!(refused * 1_000 <= requests, "{parts:?} at {percent} %: {refused}");
        }
    }
}

#[test]
fn below_the_limit_requests_may_come_in_bursts() {
    let limit = Limit::per_second(1_000);
    for together in [5, 20, 50] {
        for processes in [1, 4, 8] {
            let load = Load { together, ..Load::even(processes, 75) };
            let [requests, refused, _] = run(limit, 1..=1_000, &load, 8);
            let case = format!("{processes} processes, {together} at once");
            assert!(refused * 1_000 <= requests, "{case}: {refused} of {requests}");
        }
    }
}

#[test]
fn limits_of_other_sizes_are_shared_as_well() {
    for (limit, seconds) in [
        (Limit::per_second(100).burst(200), 60),
        (Limit::per_second(10_000), 2),
        (Limit::per_second(1_000).burst(5_000), 8),
        (Limit::per_minute(3_000), 60),
    ] {
        for percent in [60, 85, 95] {
            let came = run(limit, 1..=1_000, &Load::even(4, percent), seconds);
            assert_well(&format!("{limit} at {percent} %"), came);
        }
    }
}

#[test]
fn above_the_limit_the_whole_limit_is_admitted_and_no_more() {
    for processes in [1, 4, 16] {
        for percent in [110, 200, 1_000] {
            let load = Load::even(processes, percent);
            let [requests, refused, _] = run(Limit::per_second(1_000), 1..=1_000, &load, 4);
            let admitted = requests - refused;
            let case = format!("{processes} processes at {percent} %");
            assert!(admitted >= 3_600, "{case}: {admitted} in 4 s");
        }
    }
}

/// The results of requests of several processes at `percent` of a limit, and how many of the same requests a store
/// without leases would refuse.
fn beside_plain(limit: Limit, processes: usize, percent: u64, seconds: u64) -> ([u64; 3], u64) {
    let period = limit.period().expect("a rate").as_micros() as u64;
    let mean = 100 * period / (limit.count() * percent);
    let [leased, plain] = [false, true].map(|is_plain| {
        let mut fleet = Fleet::of(limit, processes, 1..=1_000, 7, 300);
        fleet.is_plain = is_plain;
        fleet.even(&vec![1; processes], mean, 1, period);
        fleet.forget();
        fleet.even(&vec![1; processes], mean, 1, seconds * SECOND);
        fleet.came()
    });
    (leased, plain[1])
}

/// With 10 a second, one token in hand with each of eight processes would be most of the bucket.
#[test]
fn a_small_bucket_refuses_hardly_more_than_without_leases() {
    for (limit, seconds) in [
        (Limit::per_second(10), 400),
        (Limit::per_second(20), 200),
        (Limit::per_second(50), 100),
        (Limit::per_second(100).burst(20), 60),
    ] {
        for processes in [1, 2, 4, 8, 16] {
            let ([requests, refused, _], plain) = beside_plain(limit, processes, 80, seconds);
            let case = format!("{processes} processes, {limit}: {refused} of {requests}");
            assert!(refused * 1_000 <= plain * 1_000 + requests, "{case}, without {plain}");
        }
    }
}

#[test]
fn below_the_limit_of_a_window_no_request_is_refused() {
    let window = |count, seconds| Limit::fixed_window(count, Duration::from_secs(seconds));
    for (limit, seconds) in [(window(1_000, 1), 20), (window(6_000, 60), 180)] {
        for processes in [1, 4, 8] {
            for percent in [50, 82, 90] {
                let (came, _) = beside_plain(limit, processes, percent, seconds);
                assert_well(&format!("{processes} processes at {percent} % of {limit}"), came);
            }
        }
    }
}
