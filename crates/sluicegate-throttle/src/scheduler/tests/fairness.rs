use super::*;

/// Jain's index of the costs that flows got: 1 if all are equal.
fn jain(served: &[u64]) -> f64 {
    let sum: f64 = served.iter().map(|&cost| cost as f64).sum();
    let squares: f64 = served.iter().map(|&cost| (cost as f64).powi(2)).sum();
    sum * sum / (served.len() as f64 * squares)
}

/// Serves a cost of `total` to flows that always have requests waiting, each of its own cost.
fn serve(costs: &[u64], queues: usize, total: u64) -> Vec<u64> {
    let builder = Scheduler::builder().in_flight(1).queue(1 << 20).flow_queues(queues);
    let (mut scheduler, mut running) = busy(builder);
    let mut out = Vec::new();
    let request = |flow: usize| Offer {
        flow: (flow as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ..offer(CRITICAL, costs[flow])
    };
    let mut flows = std::collections::HashMap::new();
    for flow in 0..costs.len() {
        for _ in 0..4 {
            flows.insert(queued(&scheduler.offer(0, request(flow), &mut out)).slot(), flow);
        }
    }
    let mut served = vec![0; costs.len()];
    while served.iter().sum::<u64>() < total {
        scheduler.done(0, running, None, Completion::Success, &mut out);
        let Some(Instruction::Start(id, next)) = out.pop() else { panic!("{out:?}") };
        let flow = flows[&id.slot()];
        served[flow] += next.cost();
        running = next;
        flows.insert(queued(&scheduler.offer(0, request(flow), &mut out)).slot(), flow);
    }
    served
}

#[test]
fn flows_of_unequal_request_cost_get_equal_shares() {
    let served = serve(&[1, 2, 5, 10, 20, 50], 64, 60_000);
    assert!(jain(&served) >= 0.99, "{served:?}");
    let costs: Vec<u64> = (1..=64).collect();
    let served = serve(&costs, 64, 200_000);
    assert!(jain(&served) >= 0.99, "{served:?}");
}

#[test]
fn a_flow_with_many_requests_takes_nothing_from_one_with_few() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(1, SECOND).queue(1_000));
    let mut out = Vec::new();
    for _ in 0..500 {
        scheduler.offer(0, Offer { flow: 1, ..offer(CRITICAL, 1) }, &mut out);
    }
    let mouse = queued(&scheduler.offer(0, Offer { flow: 2, ..offer(CRITICAL, 1) }, &mut out));
    let position = started(&mut scheduler, 0).iter().position(|&id| id == mouse).unwrap();
    assert!(position <= 1, "{position}");
}

#[test]
fn a_request_of_more_than_half_the_queue_waits_only_in_an_empty_one_while_others_come() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(1, SECOND).queue(100));
    let mut out = Vec::new();
    let mut offer =
        |flow, cost| scheduler.offer(0, Offer { flow, ..offer(CRITICAL, cost) }, &mut out);
    queued(&offer(1, 1));
    queued(&offer(2, 1));
    assert_eq!(reason(&offer(3, 51)), ShedReason::Share);
    queued(&offer(3, 50));
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(1, SECOND).queue(100));
    queued(&scheduler.offer(0, Offer { flow: 3, ..super::offer(CRITICAL, 100) }, &mut Vec::new()));
}

#[test]
fn a_flow_leaves_as_much_room_as_it_takes_while_others_come() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(1, SECOND).queue(100));
    let mut out = Vec::new();
    let mut offer =
        |now: u64, flow| scheduler.offer(now, Offer { flow, ..offer(CRITICAL, 1) }, &mut out);
    queued(&offer(0, 1));
    queued(&offer(0, 2));
    let greedy = (0..100).filter(|_| matches!(offer(0, 1), Offered::Queued(_))).count();
    assert_eq!(greedy, 49, "half of the queue with its first one, and half of the other's");
    assert_eq!(reason(&offer(0, 1)), ShedReason::Share);
    let other = (0..100).filter(|_| matches!(offer(0, 2), Offered::Queued(_))).count();
    assert_eq!(other, 24, "half of what was left");
    queued(&offer(0, 3));
    // When nobody else came for ten seconds, the queue is its own.
    let _ = offer(1, 1);
    while matches!(offer(10_000_001, 1), Offered::Queued(_)) {}
    assert_eq!(reason(&offer(10_000_001, 1)), ShedReason::Full);
}

#[test]
fn a_flow_without_a_queue_of_its_own_leaves_as_much_room_as_it_takes() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(1_000));
    let mut out = Vec::new();
    let mut offer = |flow| scheduler.offer(0, Offer { flow, ..offer(CRITICAL, 1) }, &mut out);
    for flow in 1..=64 {
        queued(&offer(flow));
    }
    let held = (0..1_000).filter(|_| matches!(offer(65), Offered::Queued(_))).count();
    assert_eq!(held, 468, "half of the 936 that were free");
    assert_eq!(reason(&offer(65)), ShedReason::Share);
    queued(&offer(66));
}

#[test]
fn more_flows_than_queues_share_and_none_starves() {
    let served = serve(&[3; 200], 64, 120_000);
    assert!(served.iter().all(|&cost| cost > 100), "{served:?}");
}

#[test]
fn a_dear_request_does_not_make_the_round_robin_spin() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(2).queue(u64::MAX / 4));
    let mut out = Vec::new();
    // The one place that is left is taken by this one; the other flows' requests are a billion times as dear.
    queued_or_started(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    for flow in 0..64 {
        for cost in [1, 1 << 40] {
            let offered = scheduler.offer(0, Offer { flow, ..offer(CRITICAL, cost) }, &mut out);
            queued_or_started(&offered);
        }
    }
    assert_eq!(scheduler.len(), 128);
}

fn queued_or_started(offered: &Offered) {
    assert!(matches!(offered, Offered::Queued(_) | Offered::Start(_)), "{offered:?}");
}

#[test]
fn flows_that_come_once_take_bounded_memory_and_leave_nothing() {
    let (mut scheduler, mut running) = busy(Scheduler::builder().in_flight(1).queue(1_000));
    let mut out = Vec::new();
    for number in 1..200_000_u64 {
        let flow = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        scheduler.offer(number, Offer { flow, ..offer(CRITICAL, 1) }, &mut out);
        assert!(scheduler.flows(CRITICAL).count() <= 64);
        if number % 2 == 0 {
            scheduler.done(number, running, None, Completion::Success, &mut out);
            let Some(Instruction::Start(_, next)) = out.pop() else { panic!("one waits") };
            running = next;
        }
    }
    while !scheduler.is_empty() {
        scheduler.done(1_000_000, running, None, Completion::Success, &mut out);
        let Some(Instruction::Start(_, next)) = out.pop() else { panic!("one waits") };
        running = next;
    }
    assert_eq!((scheduler.flows(CRITICAL).count(), scheduler.cost()), (0, 0));
}
