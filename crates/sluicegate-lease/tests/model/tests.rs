use std::env;

use stateright::{Checker, Model, UniformChooser};

use super::Bounds;
use crate::simulation::Rule;

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
    one_name: false,
    without: None,
};

/// A server with two servers that have a client each.
const TREE: Bounds =
    Bounds { parents: &[None, Some(0), Some(0)], clients: &[1, 2], steps: 7, ..ONE_SERVER };

/// A rule, and what has to go wrong for it to matter.
const CASES: [(Rule, Bounds); 9] = [
    (Rule::CountUntilReported, Bounds { losses: 1, ..ONE_SERVER }),
    (Rule::IgnoreStaleRequests, Bounds { repeats: 1, late: 1, ..ONE_SERVER }),
    (Rule::IgnoreStaleAnswers, Bounds { late: 2, ..ONE_SERVER }),
    (Rule::Learn, Bounds { crashes: 1, ..ONE_SERVER }),
    (Rule::TellProcessesApart, Bounds { one_name: true, losses: 1, crashes: 1, ..ONE_SERVER }),
    (Rule::MeetFirst, Bounds { repeats: 1, crashes: 1, ..ONE_SERVER }),
    (Rule::CountOutstanding, TREE),
    (Rule::EndWithParent, Bounds { cuts: 2, steps: 5, ..TREE }),
    (Rule::KeepWhileLearning, Bounds { crashes: 1, steps: 5, ..TREE }),
];

/// Everything goes wrong.
const WORST: [Bounds; 2] = [
    Bounds { losses: 1, repeats: 1, late: 2, crashes: 1, changes: 2, ..ONE_SERVER },
    Bounds { losses: 1, late: 2, crashes: 1, cuts: 1, ..TREE },
];

/// States that are looked at, of each model with all rules, unless `MODEL_STATES` says otherwise.
const SHORT: usize = 20_000;
/// Enough to find out what each rule is for.
const WITHOUT: usize = 150_000;

fn states() -> usize {
    let told = env::var("MODEL_STATES").ok();
    told.map_or(SHORT, |states| states.parse().expect("MODEL_STATES is a number"))
}

/// Looks for the shortest way to lease more than there is.
fn over_grant(bounds: Bounds) -> Option<String> {
    let states = if bounds.without.is_some() { WITHOUT } else { states() };
    found(bounds.checker().target_state_count(states).spawn_bfs().join())
}

/// Looks for a way to lease more than there is by walking at random to the end, again and again. In a model that is too
/// large to be seen whole, this gets further than the shortest ways.
fn over_grant_on_walks(bounds: Bounds, states: usize) -> Option<String> {
    found(bounds.checker().target_state_count(states).spawn_simulation(1, UniformChooser).join())
}

fn found(checker: impl Checker<Bounds>) -> Option<String> {
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
    for worst in WORST {
        assert_eq!(over_grant(worst), None, "{worst:?}");
        assert_eq!(over_grant_on_walks(worst, states()), None, "{worst:?}");
    }
}

#[test]
fn without_any_one_of_the_rules_more_is_leased_than_there_is() {
    for (rule, bounds) in CASES {
        let steps = over_grant(Bounds { without: Some(rule), ..bounds });
        println!("without {rule:?}: {}", steps.unwrap_or_else(|| panic!("{rule:?} is not needed")));
    }
}

#[test]
fn random_walks_find_what_rules_are_for() {
    for (rule, bounds) in CASES {
        // These two need so many steps in one order that walks hardly come upon it.
        if !matches!(rule, Rule::EndWithParent | Rule::KeepWhileLearning) {
            let found = over_grant_on_walks(Bounds { without: Some(rule), ..bounds }, WITHOUT);
            assert!(found.is_some(), "{rule:?}");
        }
    }
}
