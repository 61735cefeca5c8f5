use std::env;

use stateright::{Checker, Model};

use super::Bounds;
use crate::rules::Rule;

/// One server and two clients, of which the first one has everything in the beginning.
const ONE_SERVER: Bounds = Bounds {
    parents: &[None],
    clients: &[0, 0],
    steps: 5,
    losses: 0,
    repeats: 0,
    late: 0,
    crashes: 0,
    changes: 1,
    cuts: 0,
    without: None,
};

/// A server with two servers that have a client each.
const TREE: Bounds =
    Bounds { parents: &[None, Some(0), Some(0)], clients: &[1, 2], steps: 7, ..ONE_SERVER };

/// A rule, and what has to go wrong for it to matter.
const CASES: [(Rule, Bounds); 8] = [
    (Rule::CountUntilReported, Bounds { losses: 1, ..ONE_SERVER }),
    (Rule::IgnoreStaleRequests, Bounds { repeats: 1, late: 1, ..ONE_SERVER }),
    (Rule::IgnoreStaleAnswers, Bounds { late: 2, ..ONE_SERVER }),
    (Rule::Learn, Bounds { crashes: 1, ..ONE_SERVER }),
    (Rule::MeetFirst, Bounds { repeats: 1, crashes: 1, ..ONE_SERVER }),
    (Rule::CountOutstanding, TREE),
    (Rule::EndWithParent, Bounds { cuts: 2, steps: 5, ..TREE }),
    (Rule::KeepWhileLearning, Bounds { crashes: 1, steps: 5, ..TREE }),
];

/// States that are looked at, of each model with all rules, unless `MODEL_STATES` says otherwise.
const SHORT: usize = 20_000;
/// Enough to find out what each rule is for.
const WITHOUT: usize = 150_000;

fn states() -> usize {
    let told = env::var("MODEL_STATES").ok();
    told.map_or(SHORT, |states| states.parse().expect("MODEL_STATES is a number"))
}

/// Looks for a way to lease more than there is.
fn over_grant(bounds: Bounds) -> Option<String> {
    let states = if bounds.without.is_some() { WITHOUT } else { states() };
    let checker = bounds.checker().target_state_count(states).spawn_bfs().join();
    let (count, depth) = (checker.state_count(), checker.max_depth());
    println!("{count} states, up to {depth} steps");
    let steps = checker.discovery("never more than there is")?.into_actions();
    Some(format!("{steps:?}"))
}

#[test]
fn whatever_goes_wrong_there_is_never_leased_more_than_there_is() {
    for (_, bounds) in CASES {
        assert_eq!(over_grant(bounds), None, "{bounds:?}");
    }
    // All of it at once.
    let (losses, repeats, late, crashes, changes) = (1, 1, 2, 1, 2);
    let worst = Bounds { losses, repeats, late, crashes, changes, ..ONE_SERVER };
    assert_eq!(over_grant(worst), None);
    assert_eq!(over_grant(Bounds { losses, late, crashes, cuts: 1, ..TREE }), None);
}

#[test]
fn without_any_one_of_the_rules_more_is_leased_than_there_is() {
    for (rule, bounds) in CASES {
        let steps = over_grant(Bounds { without: Some(rule), ..bounds });
        println!("without {rule:?}: {}", steps.unwrap_or_else(|| panic!("{rule:?} is not needed")));
    }
}
