use super::slab::{Chain, Index};
use super::{Instruction, Scheduler, ShedReason};
use crate::error::MAX_PARTITIONS;

impl Scheduler {
    /// Makes room for `excess` by shedding requests of classes below `rank`: the least critical class first, and in
    /// each class the oldest first. Sheds nothing if that would not make enough room, and sheds no request that could
    /// stay.
    pub(super) fn evict(&mut self, rank: usize, excess: u64, out: &mut Vec<Instruction>) -> bool {
        let lower = self.lanes.from(rank + 1).iter();
        // Where the queue has been made smaller, `excess` may be more than any newcomer's cost.
        if lower.map(|class| class.cost).sum::<u64>() < excess {
            return false;
        }
        let mut freed = 0;
        for rank in (rank + 1..self.lanes.classes()).rev() {
            // The next request to look at in each partition; at most nine.
            let mut next = [None; MAX_PARTITIONS + 1];
            self.lanes.oldest(rank).zip(&mut next).for_each(|(oldest, next)| *next = Some(oldest));
            while freed < excess {
                let since = |next: &&mut Option<Index>| next.map(|at| self.slab.entry(at).since);
                let oldest = next.iter_mut().filter(|next| next.is_some()).min_by_key(since);
                let Some((next, index)) = oldest.and_then(|next| next.map(|index| (next, index)))
                else {
                    break;
                };
                let cost = self.slab.entry(index).cost;
                self.victims.push((index, cost));
                freed += cost;
                *next = self.slab.newer(Chain::Age, index);
            }
        }
        // An expensive request at the end may have made earlier evictions unnecessary. The most critical and newest
        // requests stay.
        while let Some((index, cost)) = self.victims.pop() {
            if freed - cost >= excess {
                freed -= cost;
            } else {
                self.shed(index, ShedReason::Evicted, out);
            }
        }
        true
    }

    /// Sheds the requests whose deadline has passed: nobody waits for them any more.
    pub(super) fn shed_missed(&mut self, now: u64, out: &mut Vec<Instruction>) {
        while let Some(id) = self.deadlines.pop_missed(now) {
            if let Some(index) = self.slab.find(id) {
                self.shed(index, ShedReason::Missed, out);
            }
        }
    }

    /// If the freshest requests are served first, the oldest are never reached. Those that waited for too long are shed
    /// here.
    pub(super) fn drop_stale_ends(&mut self, now: u64, out: &mut Vec<Instruction>) {
        if self.late_after.is_none() {
            return;
        }
        self.shed_oldest(out, |scheduler, at| {
            let class = &scheduler.lanes.all()[at];
            let entry = scheduler.slab.entry(class.ages.oldest?);
            let waited = now.saturating_sub(entry.since);
            class
                .codel
                .as_ref()
                .is_some_and(|codel| codel.is_late(waited))
                .then_some(ShedReason::Stale)
        });
    }

    pub(super) fn shed_oldest(
        &mut self,
        out: &mut Vec<Instruction>,
        is_late: impl Fn(&Self, usize) -> Option<ShedReason>,
    ) {
        for at in 0..self.lanes.all().len() {
            while let Some(reason) = is_late(self, at) {
                let Some(oldest) = self.lanes.all()[at].ages.oldest else { break };
                self.shed(oldest, reason, out);
            }
        }
    }
}
