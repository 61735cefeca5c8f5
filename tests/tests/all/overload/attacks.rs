//! Clients that want more than their share, on a simulated server.

use sluicegate_tests::overload::{
    CHEAP, Clients, DEAR, Flow, Group, Report, Route, Throttled, run,
};

/// Four clients ask for 40 % of the core together: less than their share beside a fifth one.
fn honest() -> Group {
    Group { flow: Flow::Many(1, 4), ..Group::new(0.4) }
}

fn beside(attacker: Group) -> Report {
    run(&mut Throttled::default(), &mut Clients::new([honest(), attacker]), 30)
}

/// A fifth client, whose requests cost this many times what the core can do.
fn attacker(load: f64) -> Group {
    Group { flow: Flow::One(1_000), ..Group::new(load) }
}

const LOADS: [f64; 3] = [1.0, 5.0, 20.0];

#[test]
fn a_client_that_sends_without_end_takes_nothing_from_others_of_its_class() {
    for load in LOADS {
        let report = beside(attacker(load));
        assert!(report.goodput(0) >= 0.99, "{report:?}");
        assert!(report.useful >= 0.99, "{report:?}");
    }
}

#[test]
fn dear_requests_that_look_like_cheap_ones_do_not_get_a_larger_share() {
    for load in LOADS {
        let report = beside(Group { costs: vec![DEAR], ..attacker(load) });
        assert!(report.goodput(0) >= 0.99, "{report:?}");
    }
    // Each of them takes as long as the whole queue.
    for load in LOADS {
        let report = beside(Group { costs: vec![10 * DEAR], ..attacker(load) });
        assert!(report.goodput(0) >= 0.85, "{report:?}");
    }
}

#[test]
fn a_client_that_comes_with_a_new_route_each_time_does_not_escape_its_prediction() {
    for load in LOADS {
        let dear = Group { costs: vec![DEAR], route: Route::Minted, ..attacker(load) };
        let report = beside(dear);
        assert!(report.goodput(0) >= 0.99, "{report:?}");
    }
}

#[test]
fn a_client_that_hangs_up_before_each_answer_is_expected_to_cost_what_it_did() {
    for load in LOADS {
        let dear = Group { costs: vec![DEAR], route: Route::One(2), ..attacker(load) };
        let report = beside(Group { hangs_up: Some(DEAR - 1), ..dear });
        assert!(report.goodput(0) >= 0.99, "{report:?}");
    }
}

/// Whoever can have as many names as it wants has as many shares: a flow is to be something that clients cannot make up.
#[test]
fn a_client_with_a_new_name_for_each_request_gets_a_share_for_each() {
    let report = beside(Group { flow: Flow::Minted, ..attacker(5.0) });
    assert!(report.goodput(0) < 0.5, "{report:?}");
    assert!(report.useful >= 0.99, "{report:?}");
}

#[test]
fn requests_of_unequal_cost_on_one_route_are_served_fairly() {
    let flow =
        |(number, cost)| Group { flow: Flow::One(number), costs: vec![cost], ..Group::new(2.0) };
    let costs = [CHEAP, 2 * CHEAP, 5 * CHEAP, 10 * CHEAP, 20 * CHEAP];
    let groups: Vec<_> = (1..).zip(costs).map(flow).collect();
    let report = run(&mut Throttled::default(), &mut Clients::new(groups), 60);
    let (sum, squares) =
        (report.used.iter().sum::<f64>(), report.used.iter().map(|used| used * used).sum::<f64>());
    let jain = sum * sum / (costs.len() as f64 * squares);
    assert!(jain >= 0.99, "{jain} {report:?}");
}
