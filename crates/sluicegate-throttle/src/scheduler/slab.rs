use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use super::offer::{Id, Index, Lane, Offer};
use crate::class::Class;

/// What the scheduler keeps for a queued request: 80 bytes with its slot.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) cost: u64,
    /// When it was offered.
    pub(super) since: u64,
    pub(super) deadline: Option<u64>,
    pub(super) flow: u64,
    pub(super) class: u8,
    /// Its place in the list of partitions.
    pub(super) partition: u8,
    /// The queue of its flow within its class.
    pub(super) queue: u16,
    /// Whether it was queued although it was expected to take too long.
    pub(super) is_tried: bool,
    has_key: bool,
    /// Zero without a key. An `Option` would take eight bytes more.
    key: u64,
    links: [Links; 2],
}

impl Entry {
    pub(super) fn new(lane: Lane, queue: u16, since: u64, offer: &Offer, is_tried: bool) -> Self {
        let &Offer { flow, cost, deadline, key, .. } = offer;
        // At most eight classes and nine partitions.
        let (class, partition) = (lane.rank as u8, lane.partition as u8);
        Self {
            cost,
            since,
            deadline,
            flow,
            class,
            partition,
            queue,
            is_tried,
            has_key: key.is_some(),
            key: key.unwrap_or_default(),
            links: [Links::default(); 2],
        }
    }

    /// What was offered.
    pub(super) fn offer(&self) -> Offer {
        let &Self { cost, deadline, flow, key, .. } = self;
        let (partition, key) = (self.partition.checked_sub(1), self.has_key.then_some(key));
        Offer { class: Class::at(self.class), flow, cost, deadline, partition, key }
    }

    pub(super) fn lane(&self) -> Lane {
        Lane { rank: self.class.into(), partition: self.partition.into() }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Links {
    previous: Option<Index>,
    next: Option<Index>,
}

/// The two lists that an entry is in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chain {
    /// Of its class, the oldest first.
    Age = 0,
    /// Of its flow, the oldest first.
    Flow = 1,
}

/// The ends of a list whose links are in the entries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct List {
    pub(super) oldest: Option<Index>,
    pub(super) newest: Option<Index>,
}

/// All queued requests, in one block of memory that is reused.
#[derive(Debug, Default)]
pub(super) struct Slab {
    slots: Vec<Slot>,
    free: Vec<Index>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

impl Slab {
    /// A slot, and its entry in the list of free ones.
    pub(super) const BYTES: usize = size_of::<Slot>() + size_of::<Index>();

    pub(super) fn insert(&mut self, entry: Entry) -> Id {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index.position()];
            slot.entry = Some(entry);
            return Id { index, generation: slot.generation };
        }
        self.slots.push(Slot { generation: 0, entry: Some(entry) });
        let number = u32::try_from(self.slots.len()).ok().and_then(NonZeroU32::new);
        let index = Index(number.expect("fewer than 2^32 requests are queued"));
        Id { index, generation: 0 }
    }

    pub(super) fn remove(&mut self, index: Index) -> (Id, Entry) {
        let slot = &mut self.slots[index.position()];
        let id = Id { index, generation: slot.generation };
        let entry = slot.entry.take().expect(QUEUED);
        // Whoever still has the old id, such as a heap of deadlines, finds nothing under it from now on.
        // It wraps after four billion requests in one slot. An old id would have to be kept for that long to be
        // mistaken.
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        (id, entry)
    }

    /// The slot of a request that is still queued.
    pub(super) fn find(&self, id: Id) -> Option<Index> {
        let slot = self.slots.get(id.index.position())?;
        (slot.generation == id.generation && slot.entry.is_some()).then_some(id.index)
    }

    pub(super) fn index(&self, id: Id) -> Index {
        self.find(id).expect(QUEUED)
    }

    pub(super) fn entry(&self, index: Index) -> &Entry {
        self.slots[index.position()].entry.as_ref().expect(QUEUED)
    }

    fn links(&mut self, chain: Chain, index: Index) -> &mut Links {
        &mut self.slots[index.position()].entry.as_mut().expect(QUEUED).links[chain as usize]
    }

    pub(super) fn newer(&self, chain: Chain, index: Index) -> Option<Index> {
        self.entry(index).links[chain as usize].next
    }

    pub(super) fn push(&mut self, chain: Chain, list: &mut List, index: Index) {
        *self.links(chain, index) = Links { previous: list.newest, next: None };
        match list.newest.replace(index) {
            Some(newest) => self.links(chain, newest).next = Some(index),
            None => list.oldest = Some(index),
        }
    }

    pub(super) fn unlink(&mut self, chain: Chain, list: &mut List, index: Index) {
        let Links { previous, next } = *self.links(chain, index);
        match previous {
            Some(previous) => self.links(chain, previous).next = next,
            None => list.oldest = next,
        }
        match next {
            Some(next) => self.links(chain, next).previous = previous,
            None => list.newest = previous,
        }
    }
}

const QUEUED: &str = "an index in a list is that of a queued request";

/// If there are more entries than this, and most belong to requests that have left, those are removed.
const FEW: usize = 64;

/// The deadlines of queued requests, the next one first.
///
/// The entry of a request stays behind when the request leaves the queue. It is removed when it becomes the first one,
/// or when such entries are more than half of all.
#[derive(Debug, Default)]
pub(super) struct Deadlines(BinaryHeap<Reverse<(u64, Id)>>);

impl Deadlines {
    /// Memory for a queued request, with as much again for entries of requests that have left.
    pub(super) const BYTES: usize = 2 * size_of::<(u64, Id)>();

    pub(super) fn push(&mut self, deadline: u64, id: Id, slab: &Slab, queued: usize) {
        // Removing from the middle of a heap would need to know where an entry is. Clearing it when half of it is
        // outdated costs a constant time for each request on average.
        if self.0.len() >= FEW.max(2 * queued) {
            self.0.retain(|Reverse((_, id))| slab.find(*id).is_some());
        }
        self.0.push(Reverse((deadline, id)));
    }

    /// When the next deadline passes.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((deadline, _))| *deadline)
    }

    /// A request whose deadline has passed.
    pub(super) fn pop_missed(&mut self, now: u64) -> Option<Id> {
        self.next_at().filter(|deadline| *deadline <= now)?;
        self.0.pop().map(|Reverse((_, id))| id)
    }

    /// Removes entries of requests that have left from the front, so that no timer fires for them.
    pub(super) fn clear_front(&mut self, slab: &Slab) {
        while self.0.peek().is_some_and(|Reverse((_, id))| slab.find(*id).is_none()) {
            self.0.pop();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
