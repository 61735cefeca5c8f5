use std::time::Duration;

use super::{SCENARIOS, Seen, Setting, scenario};
use crate::rules::{Rule, without};

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
fn over_grants() -> bool {
    let bad = || Setting::doorman().bad_network();
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
        assert!(without(rule, over_grants), "{rule:?} makes no difference");
    }
}
