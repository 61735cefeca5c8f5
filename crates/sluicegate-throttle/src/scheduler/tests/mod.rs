mod changing;
mod clock;
mod extremes;
mod fairness;
mod level;
mod order;
mod partitions;
mod promises;
mod queue_time;
mod run_times;
mod seed;
mod waits;

use std::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

const CRITICAL: Class = Class::at(0);
const NOT_CRITICAL: Class = Class::at(1);

fn offer(class: Class, cost: u64) -> Offer {
    Offer { class, flow: 0, cost, deadline: None, partition: None, key: None }
}

/// One request that runs, and nothing queued: whatever comes next waits.
fn busy(builder: SchedulerBuilder) -> (Scheduler, Running) {
    let mut scheduler = builder.build().unwrap();
    match scheduler.offer(0, offer(CRITICAL, 1), &mut Vec::new()) {
        Offered::Start(running) => (scheduler, running),
        other => panic!("{other:?}"),
    }
}

fn queued(offered: &Offered) -> Id {
    match offered {
        Offered::Queued(id) => *id,
        other => panic!("{other:?}"),
    }
}

fn reason(offered: &Offered) -> ShedReason {
    match offered {
        Offered::Shed(shed) => shed.reason,
        other => panic!("{other:?}"),
    }
}

/// The requests that are started one after the other from now on, as fast as the capacity allows.
fn started(scheduler: &mut Scheduler, mut now: u64) -> Vec<Id> {
    let mut order = Vec::new();
    let mut out = Vec::new();
    loop {
        scheduler.drain(now, &mut out);
        for instruction in out.drain(..) {
            if let Instruction::Start(id, running) = instruction {
                order.push(id);
                scheduler.done(now, running, None, Completion::Success, &mut Vec::new());
            }
        }
        match scheduler.next_at() {
            Some(next) => now = now.max(next),
            None => return order,
        }
    }
}
