use super::builder::Plan;
use super::capacity::{Capacity, Concurrency};
use super::shares::Shares;
use super::{Instruction, Scheduler, SchedulerBuilder};
use crate::error::ConfigError;

impl Scheduler {
    /// Changes the settings. Queued requests stay in the queue and running requests go on. The pace of requests, an
    /// adaptive limit, and the turns of classes and flows are kept. Requests that can start now are started;
    /// instructions are added to `out`.
    ///
    /// A queue that becomes smaller keeps its requests, and takes no others until there is room again.
    ///
    /// # Errors
    ///
    /// When the new settings cannot work, or have another kind of capacity, or another number of classes, partitions or
    /// flow queues. Nothing changes then.
    pub fn reconfigure(
        &mut self,
        now: u64,
        builder: SchedulerBuilder,
        out: &mut Vec<Instruction>,
    ) -> Result<(), ConfigError> {
        let plan = builder.plan()?;
        if let Some(part) = self.fixed_part(&plan) {
            return Err(ConfigError::Fixed(part));
        }
        self.drain(now, out);
        match (&mut self.capacity, plan.capacity) {
            (Capacity::Rate(rate), Capacity::Rate(new)) => rate.change(&new),
            (Capacity::InFlight(limit), Capacity::InFlight(mut new)) => {
                if let (Concurrency::Adaptive(old), Concurrency::Adaptive(new)) =
                    (&*limit, &mut new)
                {
                    new.start_at(old.learnt());
                }
                *limit = new;
            }
            _ => {}
        }
        self.size = plan.size;
        self.resize();
        self.stale_at = 0;
        self.late_after = plan.late_after;
        self.partitions.change(&plan.partitions);
        match (&mut self.shares, plan.weights) {
            (Some(shares), Some(weights)) => shares.change(weights),
            (shares, weights) => *shares = weights.map(Shares::new),
        }
        for queue in self.lanes.all_mut() {
            match (&mut queue.codel, &plan.codel) {
                (Some(codel), Some(new)) => codel.change(new),
                (codel, new) => codel.clone_from(new),
            }
        }
        self.drain(now, out);
        Ok(())
    }

    /// Changes the rate to this cost in each second. Requests that can start now are started.
    #[cfg(feature = "_layer")]
    pub(crate) fn change_rate(&mut self, now: u64, cost: u64, out: &mut Vec<Instruction>) {
        use super::capacity::Rate;

        let has_waiting = self.len > 0;
        if let Capacity::Rate(rate) = &mut self.capacity {
            if let Ok(new) = Rate::new(cost.max(1), std::time::Duration::from_secs(1)) {
                rate.advance(now, has_waiting);
                rate.change(&new);
                self.resize();
                self.drain(now, out);
            }
        }
    }

    fn fixed_part(&self, plan: &Plan) -> Option<&'static str> {
        let has_rate = |capacity: &Capacity| matches!(capacity, Capacity::Rate(_));
        if has_rate(&self.capacity) != has_rate(&plan.capacity) {
            Some("kind of capacity")
        } else if self.lanes.classes() != plan.classes {
            Some("number of classes")
        } else if self.partitions.len() != plan.partitions.len() {
            Some("number of partitions")
        } else if self.lanes.flow_queues() != usize::from(plan.flow_queues) {
            Some("number of flow queues")
        } else {
            None
        }
    }
}
