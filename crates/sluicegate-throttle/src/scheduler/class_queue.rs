use std::collections::{HashMap, VecDeque, hash_map};

use foldhash::fast::FixedState;

use super::codel::Codel;
use super::offer::Index;
use super::slab::{Chain, Entry, List, Slab};

/// The number of requests over which the quantum averages their cost. An average of the last few would follow the
/// flow whose turn it is, and give flows of expensive requests more.
const SMOOTHING: u128 = 1_024;

/// How long a class remembers that requests of several flows came, in microseconds.
const CONTENDED: u64 = 10_000_000;

/// The queued requests of one class, or of one partition in it, in a queue for each flow, served by deficit round robin.
///
/// A flow has a queue of its own while there are enough queues. After that, flows share queues. Each request goes to
/// the queue of its flow's hand that holds the least cost, so a small flow most likely finds a queue without a large
/// flow in it.
#[derive(Debug)]
pub(super) struct ClassQueue {
    /// All requests of the class, the oldest first.
    pub(super) ages: List,
    pub(super) cost: u64,
    pub(super) len: usize,
    pub(super) codel: Option<Codel>,
    queues: Box<[FlowQueue]>,
    /// Queues in the order of their turns. A queue that has become empty is removed when its turn comes.
    ring: VecDeque<u16>,
    owners: HashMap<u64, u16, FixedState>,
    /// The cost that each flow holds, also of flows without a queue of their own. A flow that holds nothing is not in it,
    /// so it has at most as many rows as requests wait.
    held: HashMap<u64, u64, FixedState>,
    /// Queues without an owner.
    free: Vec<u16>,
    /// How much cost a queue may spend in each round: the mean cost of a request.
    quantum: u64,
    /// The mean cost times [`SMOOTHING`].
    costs: u128,
    /// The flow of the last request.
    latest_flow: Option<u64>,
    /// Until then, the class counts as having requests of several flows.
    contended_until: u64,
}

#[derive(Debug, Default)]
struct FlowQueue {
    list: List,
    cost: u64,
    len: usize,
    /// Whether requests of other flows than its owner's may be in it.
    is_shared: bool,
    /// The cost that it may spend before its turn is over.
    deficit: u64,
    owner: Option<u64>,
    in_ring: bool,
}

impl ClassQueue {
    /// The row of a flow with one request, and the byte that its map keeps for each row.
    pub(super) const BYTES: usize = size_of::<(u64, u64)>() + 1;

    pub(super) fn new(queues: u16, codel: Option<Codel>) -> Self {
        Self {
            ages: List::default(),
            cost: 0,
            len: 0,
            codel,
            queues: (0..queues).map(|_| FlowQueue::default()).collect(),
            ring: VecDeque::with_capacity(usize::from(queues)),
            owners: HashMap::with_capacity_and_hasher(usize::from(queues), FixedState::default()),
            held: HashMap::default(),
            free: (0..queues).rev().collect(),
            quantum: 1,
            costs: 0,
            latest_flow: None,
            contended_until: 0,
        }
    }

    pub(super) const fn flow_queues(&self) -> usize {
        self.queues.len()
    }

    /// Called for every request of `flow`, whether or not it is admitted.
    pub(super) fn note(&mut self, flow: u64, now: u64) {
        // Refused requests count too. Otherwise a flow that fills the queue would be alone in it for ever, because the
        // others are refused.
        if self.latest_flow.replace(flow).is_some_and(|latest| latest != flow) {
            self.contended_until = now.saturating_add(CONTENDED);
        }
    }

    /// Whether this request would exceed its flow's share of a queue of the size `bound`, which holds `kept`. A flow may
    /// hold no more of the queue than it leaves free for others. One flow that sends more than is drained fills half of
    /// the queue, two such flows fill a third each, and a flow with nothing in the queue still finds room. So a request
    /// that is more than half of the queue itself waits only in an empty one. A flow that is alone may fill the queue.
    pub(super) fn is_greedy(&self, flow: u64, cost: u64, kept: u64, bound: u64, now: u64) -> bool {
        // More than the whole time is left if the clock has stepped back.
        // A flow that is alone may fill the queue: there is nobody to share it with, and half a queue would be wasted.
        if !(1..=CONTENDED).contains(&self.contended_until.saturating_sub(now)) {
            return false;
        }
        match self.held.get(&flow).copied().unwrap_or_default() {
            // A single request must not be able to fill the queue behind others, or one client could keep all out.
            0 => kept > 0 && cost > bound / 2,
            // The rule of dynamic thresholds (Choudhury and Hahne, 1998): nobody holds more than is free. It needs no
            // count of flows, and leaves room for the next one whatever the others do.
            held => held.saturating_add(cost) > bound.saturating_sub(kept),
        }
    }

    /// The queue for a new request of `flow`.
    pub(super) fn queue_for(&mut self, flow: u64) -> u16 {
        if let Some(&queue) = self.owners.get(&flow) {
            return queue;
        }
        // Its own queue as long as there are any: only then is its fairness exact.
        if let Some(queue) = self.free.pop() {
            self.owners.insert(flow, queue);
            self.queues[usize::from(queue)].owner = Some(flow);
            return queue;
        }
        // Shuffle sharding: of eight queues by its hash, the one with the least cost.
        let shared = hand(flow, self.queues.len()).min_by_key(|&queue| self.queues[queue].cost);
        let shared = shared.unwrap_or_default();
        self.queues[shared].is_shared = true;
        // At most 1,024 queues.
        shared as u16
    }

    pub(super) fn push(&mut self, slab: &mut Slab, index: Index) {
        let &Entry { queue, cost, flow: from, .. } = slab.entry(index);
        slab.push(Chain::Age, &mut self.ages, index);
        self.cost += cost;
        self.len += 1;
        self.learn(cost);
        *self.held.entry(from).or_default() += cost;
        let flow = &mut self.queues[usize::from(queue)];
        // A flow that comes back has one turn like all others, and no credit for the time in which it had nothing.
        if flow.list.oldest.is_none() {
            flow.deficit = self.quantum;
        }
        slab.push(Chain::Flow, &mut flow.list, index);
        flow.cost += cost;
        flow.len += 1;
        if !flow.in_ring {
            flow.in_ring = true;
            self.ring.push_back(queue);
        }
    }

    fn learn(&mut self, cost: u64) {
        let cost = u128::from(cost);
        // Begins with the first cost instead of zero, or the first thousand requests would have far too small a
        // quantum.
        self.costs = match self.costs {
            0 => cost * SMOOTHING,
            costs => costs - costs / SMOOTHING + cost,
        };
        self.quantum = u64::try_from(self.costs / SMOOTHING).unwrap_or(u64::MAX).max(1);
    }

    /// Removes a request from its lists, but not from the slab.
    pub(super) fn unlink(&mut self, slab: &mut Slab, index: Index) {
        let &Entry { queue, cost, flow: from, .. } = slab.entry(index);
        slab.unlink(Chain::Age, &mut self.ages, index);
        self.cost -= cost;
        self.len -= 1;
        if let hash_map::Entry::Occupied(mut held) = self.held.entry(from) {
            *held.get_mut() -= cost;
            if *held.get() == 0 {
                held.remove();
            }
        }
        let flow = &mut self.queues[usize::from(queue)];
        slab.unlink(Chain::Flow, &mut flow.list, index);
        flow.cost -= cost;
        flow.len -= 1;
        // Empty, it can be given to another flow at once. Its place in the ring goes when its turn comes.
        if flow.list.oldest.is_none() {
            flow.is_shared = false;
            if let Some(owner) = flow.owner.take() {
                // So the number of owners never exceeds that of queues, and the map never grows. A flow that comes back
                // may get another queue, which nobody notices because nothing of it waits.
                self.owners.remove(&owner);
                self.free.push(queue);
            }
        }
    }

    /// The request to start next. It is the oldest of the flow whose turn it is, or the freshest if the oldest was
    /// offered before `late`.
    pub(super) fn next(&mut self, slab: &Slab, late: Option<u64>) -> Option<Index> {
        if self.len == 0 {
            return None;
        }
        loop {
            let mut turns = self.ring.len();
            while turns > 0 {
                turns -= 1;
                let queue = usize::from(*self.ring.front()?);
                let flow = &mut self.queues[queue];
                let Some(index) = flow.candidate(slab, late) else {
                    flow.in_ring = false;
                    self.ring.pop_front();
                    continue;
                };
                // It stays at the front while its deficit lasts: a turn is as many requests as the quantum pays for.
                if slab.entry(index).cost <= flow.deficit {
                    return Some(index);
                }
                // Deficit round robin (Shreedhar and Varghese, 1995): a queue that cannot pay for its request saves up
                // until its next turn, so each flow gets the same cost in the long run, however dear its requests are.
                flow.deficit += self.quantum;
                self.ring.rotate_left(1);
            }
            // Without this, a request of a million quanta would take a million rounds while the lock is held.
            self.skip_rounds(slab, late);
        }
    }

    /// Skips all rounds in which no queue could start a request.
    fn skip_rounds(&mut self, slab: &Slab, late: Option<u64>) {
        let rounds = |queue: &u16| {
            let flow = &self.queues[usize::from(*queue)];
            let cost = slab.entry(flow.candidate(slab, late)?).cost;
            Some(cost.saturating_sub(flow.deficit).div_ceil(self.quantum))
        };
        // All queues save up in each of these rounds and none starts anything, so together the rounds are one addition.
        let least = self.ring.iter().filter_map(rounds).min().unwrap_or_default();
        for queue in &self.ring {
            self.queues[usize::from(*queue)].deficit += least * self.quantum;
        }
    }

    /// Called when the request that `next` returned is started. Its flow has spent its cost.
    pub(super) fn spend(&mut self, queue: u16, cost: u64) {
        let flow = &mut self.queues[usize::from(queue)];
        flow.deficit = flow.deficit.saturating_sub(cost);
    }

    /// The flows that wait, in no order.
    pub(super) fn flows(&self) -> impl Iterator<Item = QueuedFlow> + '_ {
        self.queues.iter().filter(|queue| queue.len > 0).map(|queue| QueuedFlow {
            flow: queue.owner.filter(|_| !queue.is_shared),
            requests: queue.len,
            cost: queue.cost,
        })
    }

    /// Whether the flow serves its freshest requests first.
    pub(super) fn is_late(&self, slab: &Slab, flow: u64, late: Option<u64>) -> bool {
        let Some(&queue) = self.owners.get(&flow) else { return false };
        let oldest = self.queues[usize::from(queue)].list.oldest;
        oldest.is_some_and(|oldest| late.is_some_and(|late| slab.entry(oldest).since < late))
    }
}

/// The queued requests of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedFlow {
    /// The flow, as it was offered. `None` for flows that share a queue.
    pub flow: Option<u64>,
    /// How many requests of it wait.
    pub requests: usize,
    /// Their total cost.
    pub cost: u64,
}

impl FlowQueue {
    fn candidate(&self, slab: &Slab, late: Option<u64>) -> Option<Index> {
        let oldest = self.list.oldest?;
        let is_late = late.is_some_and(|late| slab.entry(oldest).since < late);
        if is_late { self.list.newest } else { Some(oldest) }
    }
}

/// The number of queues that a flow without a queue of its own may choose from. Kubernetes uses a hand of 8, too.
pub(super) const HAND: usize = 8;

/// Deals `flow` its hand: different queues out of `queues`, always the same ones for a flow.
pub(super) fn hand(flow: u64, queues: usize) -> impl Iterator<Item = usize> {
    let mut sorted = [usize::MAX; HAND];
    let mut rest = flow;
    (0..HAND.min(queues)).map(move |dealt| {
        let left = (queues - dealt) as u64;
        let mut card = (rest % left) as usize;
        rest /= left;
        // The card-th queue of those that are not dealt yet.
        for &taken in &sorted[..dealt] {
            // In ascending order, so each dealt queue at or below the card moves it on by one, and the result is not
            // dealt yet.
            if card >= taken {
                card += 1;
            }
        }
        sorted[dealt] = card;
        sorted[..=dealt].sort_unstable();
        card
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow number, spread over 64 bits (splitmix64).
    fn flow(number: u64) -> u64 {
        let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    #[test]
    fn a_hand_holds_different_queues_and_is_dealt_again_alike() {
        for number in 0..1_000 {
            for queues in [1, 3, 8, 9, 64] {
                let mut dealt: Vec<_> = hand(flow(number), queues).collect();
                assert_eq!(dealt, hand(flow(number), queues).collect::<Vec<_>>());
                dealt.sort_unstable();
                dealt.dedup();
                assert_eq!(dealt.len(), queues.min(HAND));
                assert!(dealt.iter().all(|&queue| queue < queues));
            }
        }
    }

    /// The probabilities that Kubernetes publishes for 64 queues and hands of 8: that a small flow finds a large one in
    /// every queue of its hand.
    #[test]
    fn a_small_flow_meets_only_large_ones_as_seldom_as_published() {
        const TRIALS: u64 = 20_000;
        let share = |elephants: u64| {
            let mut met = 0;
            for trial in 0..TRIALS {
                let first = trial * (elephants + 1);
                let covered: u64 = (1..=elephants)
                    .flat_map(|elephant| hand(flow(first + elephant), 64))
                    .fold(0, |covered, queue| covered | 1 << queue);
                met += u64::from(hand(flow(first), 64).all(|queue| covered & 1 << queue != 0));
            }
            met as f64 / TRIALS as f64
        };
        assert!(share(1) == 0.0, "published: 2.26e-10");
        assert!(share(4) < 0.0015, "published: 0.00049");
        assert!((share(16) - 0.359).abs() < 0.015, "published: 0.359, found {}", share(16));
    }
}
