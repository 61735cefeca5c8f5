use super::*;

/// Offers requests of cost 1.
fn fill(scheduler: &mut Scheduler, requests: usize, class: Class) {
    for _ in 0..requests {
        queued(&scheduler.offer(0, offer(class, 1), &mut Vec::new()));
    }
}

#[test]
fn without_weights_a_class_waits_for_all_higher_ones() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(1, SECOND).queue(100));
    let mut out = Vec::new();
    let mut offer_rank = |rank| queued(&scheduler.offer(0, offer(Class::at(rank), 1), &mut out));
    let ids = [3, 1, 0, 2, 1].map(&mut offer_rank);
    assert_eq!(started(&mut scheduler, 0), [ids[2], ids[1], ids[4], ids[3], ids[0]]);
}

#[test]
fn with_weights_no_class_starves() {
    let builder = Scheduler::builder().in_flight(1).queue(100_000).classes(2).weights([3, 1]);
    let (mut scheduler, mut running) = busy(builder);
    let mut out = Vec::new();
    for _ in 0..4_000 {
        queued(&scheduler.offer(0, offer(CRITICAL, 5), &mut out));
        queued(&scheduler.offer(0, offer(NOT_CRITICAL, 10), &mut out));
    }
    let mut served = [0, 0];
    for now in 0..1_000 {
        scheduler.done(now, running, None, Completion::Success, &mut out);
        let Some(Instruction::Start(_, next)) = out.pop() else { panic!("{out:?}") };
        served[next.class().rank()] += next.cost();
        running = next;
    }
    let share = served[0] as f64 / (served[0] + served[1]) as f64;
    assert!((share - 0.75).abs() < 0.01, "{served:?}");
}

#[test]
fn a_class_that_had_nothing_to_do_gets_no_credit_for_that() {
    let builder = Scheduler::builder().in_flight(1).queue(100_000).classes(2).weights([1, 1]);
    let (mut scheduler, mut running) = busy(builder);
    let step = |scheduler: &mut Scheduler, running| {
        let mut out = Vec::new();
        scheduler.done(0, running, None, Completion::Success, &mut out);
        let Some(Instruction::Start(_, next)) = out.pop() else { panic!("{out:?}") };
        next
    };
    fill(&mut scheduler, 300, CRITICAL);
    for _ in 0..100 {
        running = step(&mut scheduler, running);
    }
    fill(&mut scheduler, 100, NOT_CRITICAL);
    let mut late = 0;
    for _ in 0..100 {
        running = step(&mut scheduler, running);
        late += running.class().rank();
    }
    assert_eq!(late, 50);
}

#[test]
fn a_flow_is_served_first_come_first_served_until_its_oldest_is_late() {
    let builder = Scheduler::builder().rate(1_000, SECOND).queue(100);
    let (mut scheduler, _running) = busy(builder.freshest_when_late(Duration::from_millis(5)));
    let mut out = Vec::new();
    let ids = [0, 1, 2, 3].map(|now| {
        scheduler.offer(now, offer(CRITICAL, 1), &mut out);
        queued(&scheduler.offer(now, offer(CRITICAL, 1), &mut out))
    });
    // Six of the eight wait for longer than five milliseconds.
    let order = started(&mut scheduler, 4);
    let position = |id| order.iter().position(|&started| started == id).unwrap();
    assert!(position(ids[0]) < position(ids[1]), "not late yet");
    assert!(position(ids[3]) < position(ids[2]), "the freshest first");
}

#[test]
fn codel_drops_at_dequeue_what_waited_while_the_queue_stood() {
    let builder = Scheduler::builder().rate(100, SECOND).queue(10_000);
    let codel = builder.codel(Duration::from_millis(5), Duration::from_millis(100));
    let (mut scheduler, _running) = busy(codel);
    let mut out = Vec::new();
    fill(&mut scheduler, 100, CRITICAL);
    let mut now = 0;
    while let Some(next) = scheduler.next_at() {
        now = next.max(now);
        scheduler.drain(now, &mut out);
    }
    let counts = scheduler.counts();
    // The one that ran first; one that shows that the queue stands; the first of the next interval. All that are left
    // have waited for more than twice the target by then.
    assert_eq!((counts.started, counts.shed_for(ShedReason::Stale)), (3, 98));
    assert_eq!(now, 30_000);
}

#[test]
fn where_the_freshest_go_first_the_queue_does_not_stay_full_of_the_late() {
    let builder = Scheduler::builder().rate(100, SECOND).queue(50);
    let (mut scheduler, _running) = busy(builder.freshest_when_late(Duration::from_millis(5)));
    let mut out = Vec::new();
    let offer = |now: u64| Offer { deadline: Some(now + 600_000), ..offer(CRITICAL, 1) };
    // Five times as much as is drained, for ten seconds.
    let mut youngest = 0;
    for now in (0..10_000_000).step_by(2_000) {
        scheduler.offer(now, offer(now), &mut out);
        for instruction in out.drain(..) {
            if let Instruction::Start(_, running) = instruction {
                youngest += u64::from(running.waited() < 20_000);
                scheduler.done(now, running, None, Completion::Success, &mut Vec::new());
            }
        }
    }
    let counts = scheduler.counts();
    assert!(counts.started >= 999, "{counts:?}");
    assert!(youngest > 50, "{youngest}");
}
