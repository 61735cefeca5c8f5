use super::capacity::Capacity;
use super::offer::{Index, Lane};
use super::slab::{Chain, Entry};
use super::wait::Chance;
use super::{Instruction, Offer, Offered, Running, Scheduler, ShedReason};
use crate::error::MAX_PARTITIONS;

impl Scheduler {
    /// Offers a request. Instructions for queued requests are added to `out`.
    pub fn offer(&mut self, now: u64, offer: Offer, out: &mut Vec<Instruction>) -> Offered {
        // First what waits, so that a new request never overtakes one whose turn has come.
        self.drain(now, out);
        self.level.observe(now, &self.counts);
        // A request that costs nothing would wait in a queue that it does not lengthen: nothing would bound how many
        // there are.
        let offer = Offer { cost: offer.cost.max(1), ..offer };
        let lane = self.lane_of(&offer);
        self.counts[lane.rank].offered += 1;
        // Before anything can refuse it: see `ClassQueue::note`.
        self.lanes.get_mut(lane).note(offer.flow, now);
        let chance = match offer.deadline {
            None => Chance::InTime,
            Some(deadline) => {
                if let Capacity::Rate(rate) = &mut self.capacity {
                    // Nothing else lets time pass while every request is refused for its deadline.
                    rate.advance(now, self.len > 0);
                }
                let wait = self.predicted_wait(lane, offer.flow, now);
                let chance = self.chance(now, wait, now, &offer);
                let alone = || now.saturating_add(self.run_times.expected(offer.key, offer.cost));
                if chance == Chance::Late && (wait == 0 || alone() >= deadline) {
                    self.level.note_hopeless(lane.rank);
                }
                chance
            }
        };
        if chance == Chance::Late {
            return self.refuse(ShedReason::Deadline, lane.rank);
        }
        let is_tried = chance == Chance::Tried;
        // `drain` has started all that could start, so nobody is overtaken here.
        if self.starts_at_once(lane, now) {
            self.counts[lane.rank].at_once += 1;
            return Offered::Start(self.start(Running::new(now, lane, &offer, now, is_tried)));
        }
        let offered = self.queue(now, lane, &offer, is_tried, out);
        if is_tried && matches!(offered, Offered::Shed(_)) {
            self.run_times.give_back_try(offer.key);
        }
        offered
    }

    /// Queues a request, if there is room.
    fn queue(
        &mut self,
        now: u64,
        lane: Lane,
        offer: &Offer,
        is_tried: bool,
        out: &mut Vec<Instruction>,
    ) -> Offered {
        let Offer { flow, cost, .. } = *offer;
        let rank = lane.rank;
        if cost > self.bound {
            return self.refuse(ShedReason::NeverFits, rank);
        }
        // It would be shed for its wait before anything is started. To say so now lets its client go elsewhere in time.
        if self.is_stopped() {
            return self.refuse(ShedReason::Full, rank);
        }
        // Only what is as critical, or more. The rest would be evicted for it, so it does not count as taken.
        let kept: u64 = self.lanes.down_to(rank).iter().map(|queue| queue.cost).sum();
        if self.lanes.get(lane).is_greedy(flow, cost, kept, self.bound, now) {
            return self.refuse(ShedReason::Share, rank);
        }
        let excess = self.cost.saturating_add(cost).saturating_sub(self.bound);
        if excess > 0 && !self.evict(rank, excess, out) {
            return self.refuse(ShedReason::Full, rank);
        }
        self.note_wait(now);
        let queue = self.lanes.get_mut(lane).queue_for(flow);
        let id = self.slab.insert(Entry::new(lane, queue, now, offer, is_tried));
        // Before it is pushed: a class that has had nothing to wait for does not get turns for that time.
        if let (Some(shares), false) = (&mut self.shares, self.lanes.has_waiting(rank)) {
            shares.join(rank);
        }
        let index = self.slab.index(id);
        self.lanes.get_mut(lane).push(&mut self.slab, index);
        self.partitions.get_mut(lane.partition).waiting += 1;
        self.counts[rank].queued += 1;
        self.cost += cost;
        self.len += 1;
        if let Some(deadline) = offer.deadline {
            self.deadlines.push(deadline, id, &self.slab, self.len);
        }
        Offered::Queued(id)
    }

    #[inline]
    fn lane_of(&self, offer: &Offer) -> Lane {
        let rank = offer.class.rank().min(self.lanes.classes() - 1);
        Lane { rank, partition: self.partitions.at(offer.partition) }
    }

    /// Whether a new request starts at once. Everything that could start has been started before.
    fn starts_at_once(&mut self, lane: Lane, now: u64) -> bool {
        let has_place = match &mut self.capacity {
            Capacity::Rate(rate) => {
                rate.advance(now, self.len > 0);
                self.len == 0 && rate.is_free()
            }
            Capacity::InFlight(limit) => {
                let limit = limit.limit();
                self.len == 0 && self.running < limit
                    || self.partitions.is_below_share(lane.partition, limit)
            }
        };
        // Noted for the layer, which then sees to it that the thread has another turn soon.
        self.is_held |= has_place && self.allowance == 0;
        has_place && self.allowance > 0
    }

    fn refuse(&mut self, reason: ShedReason, rank: usize) -> Offered {
        Offered::Shed(self.counted(reason, rank))
    }
}

impl Scheduler {
    /// Makes room for `excess` by shedding requests of classes below `rank`: the least critical class first, and in
    /// each class the oldest first. Sheds nothing if that would not make enough room, and sheds no request that could
    /// stay.
    pub(super) fn evict(&mut self, rank: usize, excess: u64, out: &mut Vec<Instruction>) -> bool {
        // First whether it can succeed at all. Shedding some requests and then refusing the new one would help nobody.
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
            // The heads of the partitions are merged by age, as if they were one list.
            while freed < excess {
                let since = |next: &&mut Option<Index>| next.map(|at| self.slab.entry(at).since);
                let oldest = next.iter_mut().filter(|next| next.is_some()).min_by_key(since);
                let Some((next, index)) = oldest.and_then(|next| next.map(|index| (next, index)))
                else {
                    break;
                };
                let cost = self.slab.entry(index).cost;
                // Collected and not shed yet, because the next loop takes some of them off the list again.
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
            // The entry of a request that has left stays in the heap until its time comes.
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
