use std::time::Duration;

use super::setting::Network;
use super::{Rule, SCENARIOS, Seen, Setting, crowd, crowded, scenario};

fn seen(number: u32, setting: Setting, seed: u64) -> Seen {
    let (mut world, seconds) = scenario(number, setting, seed);
    world.run(seconds * 1_000);
    world.seen
}

#[test]
fn doormans_scenarios_over_grant_nothing() {
    for number in SCENARIOS {
        for setting in [
            Setting::doorman(),
            Setting::doorman().refresh(Duration::from_secs(1)),
            Setting::doorman().bad_network(),
        ] {
            let seen = seen(number, setting, u64::from(number));
            println!("{number}: {:.4} {:.1} {}", seen.usage(60), seen.largest, seen.over_grants);
            assert_eq!(seen.over_grants, 0, "scenario {number}");
        }
    }
}

/// Whether one of some seeds over-grants in a bad hour.
fn over_grants_without(rule: Rule) -> bool {
    let bad = || Setting { without: Some(rule), ..Setting::doorman().bad_network() };
    (0..20).any(|seed| seen(7, bad(), seed).over_grants > 0)
}

#[test]
fn each_rule_is_needed_in_a_bad_hour() {
    for rule in [
        Rule::CountOutstanding,
        Rule::EndWithParent,
        Rule::KeepWhileLearning,
        Rule::CountUntilReported,
        Rule::IgnoreStaleAnswers,
        Rule::Learn,
    ] {
        assert!(over_grants_without(rule), "{rule:?} makes no difference");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let csv = |seed| seen(7, Setting::doorman().bad_network(), seed).csv();
    assert_eq!(csv(1), csv(1));
    assert_ne!(csv(1), csv(2));
}

/// An hour of Doorman's 45 clients, quick ones, without mishaps of its own.
fn hour(network: Network, drift: Option<u64>) -> Seen {
    let quick = Setting::doorman().refresh(Duration::from_secs(1));
    let (mut world, _) = scenario(5, Setting { network, drift, ..quick }, 3);
    world.run(3_600_000);
    world.seen
}

#[track_caller]
fn assert_within(seen: &Seen, usage: f64) {
    assert_eq!(seen.over_grants, 0, "{} was leased", seen.largest);
    assert!(seen.usage(60) > usage, "only {} is used", seen.usage(60));
}

#[test]
fn slow_lost_repeated_and_overtaking_messages_and_broken_links_over_grant_nothing() {
    let quick = || Network { latency: 50, ..Network::default() };
    // What the network does, how often, and how much is used all the same.
    for (network, happened, usage) in [
        (Network { latency: 2_000, ..quick() }, (|_| u64::MAX) as fn(&Seen) -> u64, 0.98),
        (Network { lost: 200, ..quick() }, |seen| seen.happened.lost / 10, 0.9),
        (
            Network { latency: 1_500, twice: 500, ..quick() },
            |seen| (seen.happened.twice / 10).min(seen.happened.overtaken),
            0.98,
        ),
        (
            Network { latency: 500, twice: 100, late: 200, ..quick() },
            |seen| (seen.happened.late / 10).min(seen.happened.overtaken),
            0.9,
        ),
        (Network { cut_every: Some(15), ..quick() }, |seen| seen.happened.cut, 0.7),
    ] {
        let seen = hour(network, None);
        assert!(happened(&seen) > 1_000);
        assert_within(&seen, usage);
    }
}

#[test]
fn clocks_of_different_speeds_over_grant_nothing() {
    // Quick and slow ones are nearly one part in 64 apart.
    let network = || Network { latency: 50, lost: 50, cut_every: Some(15), ..Network::default() };
    assert_within(&hour(network(), Some(130)), 0.7);
    // The simulation would see it if they were further apart than a server makes up for.
    assert!(hour(network(), Some(6)).over_grants > 0);
}

#[test]
fn servers_that_crash_over_grant_nothing_whether_or_not_clients_are_known() {
    for knows_clients in [true, false] {
        let seen = seen(7, Setting { knows_clients, ..Setting::doorman() }, 5);
        assert!(seen.happened.crashed > 20 && seen.happened.elected > 20);
        assert_within(&seen, if knows_clients { 0.95 } else { 0.8 });
    }
}

#[test]
fn ten_thousand_clients_share_five_million_requests_a_second() {
    let mut world = crowd(crowded(), 1);
    world.run(60_000);
    world.fill_buckets(100);
    world.run(70_000);
    assert_within(&world.seen, 0.99);
    // Real token buckets of one client in a hundred send what the fluid model says.
    let (admitted, fluid) = world.admitted();
    assert!((admitted as f64 / fluid - 1.0).abs() < 0.01, "{admitted} of {fluid}");
}

#[test]
fn after_a_spike_shares_are_fair_again_within_seconds() {
    for seed in 0..5 {
        let quick = Setting::doorman().refresh(Duration::from_secs(1));
        assert!(seen(6, Setting::doorman(), seed).fair_after(150, 0.02) < Some(6));
        assert!(seen(6, quick.clone(), seed).fair_after(150, 0.02) < Some(6));
        // Modest clients leave room, of which the two that spike get all, from all levels of the tree.
        assert!(seen(8, quick, seed).fair_after(150, 0.02) < Some(6));
    }
}

#[test]
fn after_a_loss_that_outlives_all_leases_everything_is_used_again_when_clients_have_asked() {
    for seed in 0..5 {
        // They ask after 1 s × 1.3ⁿ, which is up to 22 s after 70 s.
        let quick = Setting::doorman().refresh(Duration::from_secs(1));
        assert!(seen(3, quick, seed).used_after(190, 0.97) < Some(27));
    }
}
