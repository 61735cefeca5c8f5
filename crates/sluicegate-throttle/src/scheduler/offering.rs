use super::capacity::Capacity;
use super::lane::Lane;
use super::slab::Entry;
use super::wait::Chance;
use super::{Instruction, Offer, Offered, Running, Scheduler, ShedReason};

impl Scheduler {
    /// Offers a request. Instructions for queued requests are added to `out`.
    pub fn offer(&mut self, now: u64, offer: Offer, out: &mut Vec<Instruction>) -> Offered {
        match self.start_at_once(now, &offer, out) {
            Some(running) => Offered::Start(running),
            None => self.offer_again(now, offer, out),
        }
    }

    /// The first half of [`offer`](Self::offer), apart because it is all that most requests need. `None` for a request
    /// with a deadline, and for one that cannot start at once.
    #[inline]
    pub(crate) fn start_at_once(
        &mut self,
        now: u64,
        offer: &Offer,
        out: &mut Vec<Instruction>,
    ) -> Option<Running> {
        self.drain(now, out);
        self.level.observe(now, &self.counts);
        let offer = &Offer { cost: offer.cost.max(1), ..*offer };
        let lane = self.lane_of(offer);
        self.counts[lane.rank].offered += 1;
        self.lanes.get_mut(lane).note(offer.flow, now);
        if offer.deadline.is_some() || !self.starts_at_once(lane, now) {
            return None;
        }
        self.counts[lane.rank].at_once += 1;
        Some(self.start(Running::new(now, lane, offer, now, false)))
    }

    /// The second half of [`offer`](Self::offer).
    pub(crate) fn offer_again(
        &mut self,
        now: u64,
        offer: Offer,
        out: &mut Vec<Instruction>,
    ) -> Offered {
        let offer = Offer { cost: offer.cost.max(1), ..offer };
        let lane = self.lane_of(&offer);
        if let Capacity::Rate(rate) = &mut self.capacity {
            // Nothing else lets time pass while every request is refused for its deadline.
            rate.advance(now, self.len > 0);
        }
        let wait = offer.deadline.map_or(0, |_| self.predicted_wait(lane, offer.flow, now));
        let chance = self.chance(now, wait, now, &offer);
        if chance == Chance::Late {
            return self.refuse(ShedReason::Deadline, lane.rank);
        }
        let is_tried = chance == Chance::Tried;
        if self.starts_at_once(lane, now) {
            self.counts[lane.rank].at_once += 1;
            return Offered::Start(self.start(Running::new(now, lane, &offer, now, is_tried)));
        }
        self.queue(now, lane, &offer, is_tried, out)
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
        if self.is_stopped() {
            return self.refuse(ShedReason::Full, rank);
        }
        // Less critical requests can make room.
        let kept: u64 = self.lanes.down_to(rank).iter().map(|queue| queue.cost).sum();
        if self.lanes.get(lane).is_greedy(flow, cost, kept, self.bound, now) {
            return self.refuse(ShedReason::Share, rank);
        }
        if self.cost.saturating_add(cost) > self.bound {
            let excess = self.cost.saturating_add(cost).saturating_sub(self.bound);
            if excess > 0 && !self.evict(rank, excess, out) {
                return self.refuse(ShedReason::Full, rank);
            }
        }
        self.note_wait(now);
        let queue = self.lanes.get_mut(lane).queue_for(flow);
        let id = self.slab.insert(Entry::new(lane, queue, now, offer, is_tried));
        if let (Some(shares), false) = (&mut self.shares, self.lanes.has_waiting(rank)) {
            shares.join(rank);
        }
        let index = self.slab.index(id);
        self.lanes.get_mut(lane).push(&mut self.slab, index);
        self.partitions.wait(lane.partition);
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
        self.is_held |= has_place && self.allowance == 0;
        has_place && self.allowance > 0
    }

    fn refuse(&mut self, reason: ShedReason, rank: usize) -> Offered {
        Offered::Shed(self.counted(reason, rank))
    }
}
