use super::slab::Chain;
use super::{Instruction, Scheduler, ShedReason};

impl Scheduler {
    /// Makes room for `excess` by shedding requests of classes below `rank`, the least critical class first and the
    /// oldest first in each. Sheds nobody if that does not make room, and nobody who could stay.
    pub(super) fn evict(&mut self, rank: usize, excess: u64, out: &mut Vec<Instruction>) -> bool {
        let lower = rank + 1..self.classes.len();
        if self.classes[lower.clone()].iter().map(|class| class.cost).sum::<u64>() < excess {
            return false;
        }
        let mut freed = 0;
        for class in self.classes[lower].iter().rev() {
            let mut next = class.ages.oldest;
            while let (Some(index), true) = (next, freed < excess) {
                let cost = self.slab.entry(index).cost;
                self.victims.push((index, cost));
                freed += cost;
                next = self.slab.newer(Chain::Age, index);
            }
        }
        // One dear request at the end may have made some before it unnecessary. The most critical and newest stay.
        while let Some((index, cost)) = self.victims.pop() {
            if freed - cost >= excess {
                freed -= cost;
            } else {
                self.shed(index, ShedReason::Evicted, out);
            }
        }
        true
    }

    /// Sheds requests whose deadline has passed, from the oldest end of each class.
    pub(super) fn shed_expired(&mut self, now: u64, out: &mut Vec<Instruction>) {
        self.shed_oldest(out, |scheduler, rank| {
            let entry = scheduler.slab.entry(scheduler.classes[rank].ages.oldest?);
            entry.deadline.is_some_and(|deadline| deadline <= now).then_some(ShedReason::Deadline)
        });
    }

    /// Where the freshest requests are served first, nobody comes to the oldest ones: those that are too late are
    /// shed here.
    pub(super) fn drop_stale_ends(&mut self, now: u64, out: &mut Vec<Instruction>) {
        if self.late_after.is_none() {
            return;
        }
        self.shed_oldest(out, |scheduler, rank| {
            let class = &scheduler.classes[rank];
            let entry = scheduler.slab.entry(class.ages.oldest?);
            if entry.deadline.is_some_and(|deadline| deadline <= now) {
                return Some(ShedReason::Deadline);
            }
            let waited = now.saturating_sub(entry.since);
            class
                .codel
                .as_ref()
                .is_some_and(|codel| codel.is_late(waited))
                .then_some(ShedReason::Stale)
        });
    }

    fn shed_oldest(
        &mut self,
        out: &mut Vec<Instruction>,
        is_late: impl Fn(&Self, usize) -> Option<ShedReason>,
    ) {
        for rank in 0..self.classes.len() {
            while let Some(reason) = is_late(self, rank) {
                let Some(oldest) = self.classes[rank].ages.oldest else { break };
                self.shed(oldest, reason, out);
            }
        }
    }
}
