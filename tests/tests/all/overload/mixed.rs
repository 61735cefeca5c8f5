//! Cheap and dear requests on one route, on a simulated server.

use sluicegate_tests::overload::{Clients, Flow, Group, Throttled, run};

/// Nineteen of twenty requests need 0.2 ms of the core, one needs 20 ms.
fn costs() -> Vec<u64> {
    let mut costs = vec![200; 19];
    costs.push(20_000);
    costs
}

const MEAN: f64 = 1_190.0;

const FLOWS: [Flow; 4] =
    [Flow::One(1), Flow::Many(1, 10), Flow::Many(1, 1_000), Flow::Many(1, 10_000)];

#[test]
fn as_many_requests_of_mixed_cost_are_served_as_the_capacity_pays_for() {
    for (share, flow) in [0.8, 0.5].into_iter().flat_map(|share| FLOWS.map(|flow| (share, flow))) {
        let mut throttled = Throttled::cpu(share);
        let group = Group { costs: costs(), flow, ..Group::new(1_600.0 * MEAN / 1e6) };
        let report = run(&mut throttled, &mut Clients::new([group]), 60);
        let (served, paid_for) = (report.served[0] as f64 / 60.0, share * 1e6 / MEAN);
        // How many dear ones come is chance: within a fiftieth, as the seed is.
        assert!(served >= 0.95 * paid_for, "{served:.0} of {paid_for:.0} with {flow:?}");
        assert!(report.used[0] >= 0.98 * share, "{:.3} of {share} with {flow:?}", report.used[0]);
        let accuracy = throttled.accuracy();
        assert!((0.9..=1.1).contains(&accuracy), "{accuracy:.3} with {flow:?}");
    }
}

/// A thousandth of the requests costs as much as all others together.
#[test]
fn rare_requests_that_are_very_dear_leave_the_capacity_in_use() {
    let mut costs = vec![100; 999];
    costs.push(100_000);
    for flow in FLOWS {
        let group = Group { costs: costs.clone(), flow, ..Group::new(2.0) };
        let report = run(&mut Throttled::cpu(0.5), &mut Clients::new([group]), 15);
        assert!(report.used[0] >= 0.95 * 0.5, "{:.3} with {flow:?}", report.used[0]);
    }
}

#[test]
fn what_fits_is_served_however_costs_differ() {
    for flow in FLOWS {
        let group = Group { costs: costs(), flow, ..Group::new(0.6) };
        let report = run(&mut Throttled::cpu(0.8), &mut Clients::new([group]), 60);
        assert!(report.goodput(0) >= 0.995, "{:.4} with {flow:?}", report.goodput(0));
    }
}

/// The fifth client sends nothing but the dear kind of request, at ten times what the server can do.
#[test]
fn a_client_of_dear_requests_takes_nothing_from_clients_whose_costs_are_mixed() {
    let honest = Group { costs: costs(), flow: Flow::Many(1, 4), ..Group::new(0.4) };
    let dear = Group { costs: vec![20_000], flow: Flow::One(1_000), ..Group::new(10.0) };
    let report = run(&mut Throttled::default(), &mut Clients::new([honest, dear]), 60);
    assert!(report.goodput(0) >= 0.95, "{report:?}");
    assert!(report.useful >= 0.95, "{report:?}");
}
