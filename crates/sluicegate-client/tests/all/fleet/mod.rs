//! Clients that share the limit of one server, in simulated time: how much they use of it, and how often they are refused.

mod simulation;

use std::time::Duration;

use sluicegate::Limit;

use self::simulation::{Fleet, Report};

fn report(limit: Limit, clients: usize, wanted: u64) -> Report {
    let report = Fleet { limit, clients, wanted, latency: Duration::from_millis(2) }.run();
    println!("{clients} clients want {wanted}/s of {limit}: {report}");
    report
}

#[test]
fn eight_clients_use_what_the_server_allows_and_are_hardly_ever_refused() {
    let report = report(Limit::per_second(100), 8, 400);
    assert!(report.refused_share() < 0.01, "{report}");
    assert!(report.use_of(100.0) >= 0.97, "{report}");
}

/// They know how much all may still send in a window, but not what the others send before it ends. `RateLimit` tells the end in whole
/// seconds, so of a window of one second they do not know when it ends either.
#[test]
fn eight_clients_of_a_fixed_window_use_it_up_and_are_refused_at_its_end() {
    let report = report(Limit::fixed_window(100, Duration::from_secs(1)), 8, 400);
    assert!(report.use_of(100.0) >= 0.96, "{report}");
    assert!(report.refused_share() < 0.05, "{report}");
}

/// What is left of a sliding window is what the present rate does not use: eight clients keep about a tenth, because each
/// knows only what was left before its last request.
#[test]
fn eight_clients_of_a_sliding_window_leave_a_tenth_and_are_hardly_ever_refused() {
    let report = report(Limit::sliding_window(100, Duration::from_secs(1)), 8, 400);
    assert!(report.use_of(100.0) >= 0.85, "{report}");
    assert!(report.refused_share() < 0.01, "{report}");
}

#[test]
fn one_client_is_never_refused() {
    for limit in [
        Limit::per_second(100),
        Limit::fixed_window(100, Duration::from_secs(1)),
        Limit::sliding_window(100, Duration::from_secs(1)),
        Limit::per_minute(60),
    ] {
        let report = report(limit, 1, 400);
        assert_eq!((report.refused, report.refused_early), (0, 0), "{limit}: {report}");
    }
}

#[test]
fn one_client_uses_up_each_fixed_window() {
    let report = report(Limit::fixed_window(100, Duration::from_secs(1)), 1, 400);
    assert!(report.use_of(100.0) >= 0.96, "{report}");
}

/// The server says that there is nothing for a second, although a token comes back in a hundredth of that.
#[test]
fn one_client_does_not_wait_for_a_second_where_a_small_bucket_is_full_before() {
    let report = report(Limit::per_second(100).burst(10), 1, 400);
    assert!(report.use_of(100.0) >= 0.88, "{report}");
    assert!(report.refused_share() < 0.01, "{report}");
}

#[test]
fn clients_that_want_less_than_the_limit_wait_for_nothing() {
    let report = report(Limit::per_second(100), 8, 80);
    assert_eq!(report.refused, 0, "{report}");
    assert!(report.use_of(80.0) >= 0.99, "{report}");
}

#[test]
fn clients_that_share_next_to_nothing_are_refused_less_often_than_they_are_told_to_come() {
    // One request a second for eight clients: whoever comes when `Retry-After` is over finds it taken.
    let report = report(Limit::per_minute(60), 8, 400);
    assert!(report.refused < 8 * 20, "{report}");
    assert!(report.use_of(1.0) >= 0.9, "{report}");
}
