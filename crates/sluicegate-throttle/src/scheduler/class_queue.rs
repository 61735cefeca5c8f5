use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use super::codel::Codel;
use super::sharding::hand;
use super::slab::{Chain, Entry, Index, List, Slab};

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
    /// The cost of the owner's own requests, without those of other flows that share the queue.
    owned: u64,
    in_ring: bool,
}

impl ClassQueue {
    pub(super) fn new(queues: u16, codel: Option<Codel>) -> Self {
        Self {
            ages: List::default(),
            cost: 0,
            len: 0,
            codel,
            queues: (0..queues).map(|_| FlowQueue::default()).collect(),
            ring: VecDeque::with_capacity(usize::from(queues)),
            owners: HashMap::with_capacity_and_hasher(usize::from(queues), FixedState::default()),
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
        if !(1..=CONTENDED).contains(&self.contended_until.saturating_sub(now)) {
            return false;
        }
        let owned = self.owners.get(&flow).map(|&queue| self.queues[usize::from(queue)].owned);
        match owned.unwrap_or_default() {
            0 => kept > 0 && cost > bound / 2,
            held => held.saturating_add(cost) > bound.saturating_sub(kept),
        }
    }

    /// The queue for a new request of `flow`.
    pub(super) fn queue_for(&mut self, flow: u64) -> u16 {
        if let Some(&queue) = self.owners.get(&flow) {
            return queue;
        }
        if let Some(queue) = self.free.pop() {
            self.owners.insert(flow, queue);
            self.queues[usize::from(queue)].owner = Some(flow);
            return queue;
        }
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
        let flow = &mut self.queues[usize::from(queue)];
        if flow.list.oldest.is_none() {
            flow.deficit = self.quantum;
        }
        slab.push(Chain::Flow, &mut flow.list, index);
        flow.cost += cost;
        flow.len += 1;
        flow.owned += if flow.owner == Some(from) { cost } else { 0 };
        if !flow.in_ring {
            flow.in_ring = true;
            self.ring.push_back(queue);
        }
    }

    fn learn(&mut self, cost: u64) {
        let cost = u128::from(cost);
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
        let flow = &mut self.queues[usize::from(queue)];
        slab.unlink(Chain::Flow, &mut flow.list, index);
        flow.cost -= cost;
        flow.len -= 1;
        flow.owned -= if flow.owner == Some(from) { cost } else { 0 };
        if flow.list.oldest.is_none() {
            flow.is_shared = false;
            if let Some(owner) = flow.owner.take() {
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
                if slab.entry(index).cost <= flow.deficit {
                    return Some(index);
                }
                flow.deficit += self.quantum;
                self.ring.rotate_left(1);
            }
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
