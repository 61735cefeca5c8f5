use super::{Contestant, Findings, Traffic, judge, ours};

/// Enough of each traffic to show everything, and quick without optimization.
const SOME: usize = 20_000;

fn judged(traffic: &Traffic, contestant: Contestant) -> Findings {
    judge(traffic.rate, traffic.requests.iter().copied().take(SOME), contestant)
}

#[test]
fn every_algorithm_of_sluicegate_keeps_its_promise() {
    for traffic in Traffic::all() {
        for contestant in ours(traffic.rate, traffic.cost) {
            let name = contestant.name;
            let Findings { beyond_promise, short_of_promise, .. } = judged(&traffic, contestant);
            assert_eq!((beyond_promise, short_of_promise), (0, 0), "{name}, {}", traffic.name);
        }
    }
}

#[test]
fn the_sliding_log_of_sluicegate_is_the_exact_log() {
    for traffic in Traffic::all() {
        let ours = ours(traffic.rate, traffic.cost);
        let log = ours.into_iter().find(|ours| ours.name == "sluicegate, sliding log");
        let findings = judged(&traffic, log.expect("a sliding log"));
        assert_eq!((findings.wrongly_admitted, findings.wrongly_refused), (0, 0));
        assert_eq!(findings, judged(&traffic, Contestant::exact(traffic.rate)));
    }
}

#[test]
fn traffic_is_always_the_same_in_order_and_begins_at_once() {
    for (traffic, again) in Traffic::all().zip(Traffic::all()) {
        let times = |traffic: &Traffic| traffic.requests.iter().map(|r| r.at).collect::<Vec<_>>();
        assert!(times(&traffic) == times(&again), "{}", traffic.name);
        assert!(times(&traffic).is_sorted(), "{}", traffic.name);
        assert_eq!(traffic.requests[0].at, 0);
        assert!(traffic.requests.len() > 10_000, "{}", traffic.name);
    }
}
