use std::num::NonZeroU32;

use crate::class::Class;

/// A request that asks to be started.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// How critical it is.
    pub class: Class,
    /// The flow of the request. Requests of one class are served fairly between flows. If clients can choose the key of
    /// their flow, pass a hash of it under a secret seed.
    pub flow: u64,
    /// What it is expected to cost; counted as at least 1.
    pub cost: u64,
    /// When its client gives up, in microseconds on the clock that `now` is read from.
    pub deadline: Option<u64>,
    /// Its [partition](super::SchedulerBuilder::partitions), counted from 0; `None` for no partition.
    pub partition: Option<u8>,
    /// The key by which it is learnt how long requests run, such as a hash of the method and the route under a secret
    /// seed. A request that would run past its deadline is refused. How long it would run is learnt from the last
    /// requests with its key, for each cost; for requests without a key, from all requests together.
    pub key: Option<u64>,
}

/// What becomes of a request that was offered.
#[derive(Debug)]
pub enum Offered {
    /// Start it.
    Start(Running),
    /// It waits. An [`Instruction`] says later what becomes of it.
    Queued(Id),
    /// Refuse it.
    Shed(Shed),
}

/// What to do with a queued request.
#[derive(Debug)]
pub enum Instruction {
    /// Start it.
    Start(Id, Running),
    /// Refuse it.
    Shed(Id, Shed),
}

/// Why a request is refused, and when to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shed {
    /// The class of the request.
    pub class: Class,
    /// Why.
    pub reason: ShedReason,
    /// How long it takes to drain everything ahead of it, in microseconds.
    pub retry_after: u64,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShedReason {
    /// The queue is full, and evicting its less critical requests would not make enough room.
    Full,
    /// It costs more than the queue holds.
    NeverFits,
    /// A more critical request has taken its place in the queue.
    Evicted,
    /// When it was offered, it was not expected to finish before its deadline. If only its own running time would be
    /// too long, one such request of its key is tried each second all the same, because the prediction may be outdated.
    /// If it leaves before it has shown anything, the next one is tried at once.
    Deadline,
    /// It missed its deadline in the queue, or could no longer finish before its deadline.
    Missed,
    /// It waited for longer than the queue is long, or for too long in a standing queue, as CoDel defines one.
    Stale,
    /// Its flow already holds its share of the queue, and other flows send requests too.
    Share,
}

impl ShedReason {
    /// All reasons, in the order of [`Counts::shed`](super::Counts::shed).
    pub const ALL: [Self; 7] = [
        Self::Full,
        Self::NeverFits,
        Self::Evicted,
        Self::Deadline,
        Self::Missed,
        Self::Stale,
        Self::Share,
    ];

    /// The reason as one word, for metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NeverFits => "never_fits",
            Self::Evicted => "evicted",
            Self::Deadline => "deadline",
            Self::Missed => "missed",
            Self::Stale => "stale",
            Self::Share => "share",
        }
    }
}

/// A time that does not come.
pub(super) const NEVER: u64 = u64::MAX;

/// A request that was started. Give it to [`Scheduler::done`](super::Scheduler::done) when it has ended: until then, it
/// takes up capacity.
#[derive(Debug)]
#[must_use = "until it is given to `done`, it takes up capacity"]
pub struct Running {
    pub(super) class: Class,
    /// Its place in the list of partitions.
    pub(super) partition: u8,
    pub(super) flow: u64,
    pub(super) cost: u64,
    pub(super) started: u64,
    pub(super) waited: u64,
    /// How much time a rate had lost when it was started, in microseconds.
    pub(super) lost: u64,
    /// How many requests ran when it was started, itself included. With 32 bits, all of this takes no more room in a queue.
    pub(super) in_flight: u32,
    /// Whether it was started although it was expected to take too long for its client.
    pub(super) is_tried: bool,
    pub(super) key: Option<u64>,
    /// When its response began: [`NEVER`] as long as it has not.
    pub(super) answered: u64,
}

impl Running {
    /// A request that was offered `since` and starts `now`.
    pub(super) fn new(now: u64, lane: Lane, offer: &Offer, since: u64, is_tried: bool) -> Self {
        Self {
            // At most eight classes and nine partitions.
            class: Class::at(lane.rank as u8),
            partition: lane.partition as u8,
            flow: offer.flow,
            cost: offer.cost,
            started: now,
            waited: now.saturating_sub(since),
            lost: 0,
            in_flight: 0,
            is_tried,
            key: offer.key,
            answered: NEVER,
        }
    }

    /// Its response begins `now`, in microseconds. For requests that are done at that moment, this is not needed.
    pub const fn answer(&mut self, now: u64) {
        self.answered = now;
    }

    /// Its class.
    pub const fn class(&self) -> Class {
        self.class
    }

    /// Its flow.
    pub const fn flow(&self) -> u64 {
        self.flow
    }

    /// The cost that it was started with.
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// When it was started, in microseconds.
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// How long it waited in the queue, in microseconds.
    pub const fn waited(&self) -> u64 {
        self.waited
    }
}

/// How a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// It was served: its time counts.
    Success,
    /// The server was overloaded, or a deadline passed.
    Overload,
    /// Another error. It says nothing about the load.
    Error,
    /// The client has gone. See [`Running::answer`].
    Cancelled,
}

/// The queue of one class and partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) rank: usize,
    /// Its place in the list of partitions.
    pub(super) partition: usize,
}

/// The index of an entry in the slab, counted from 1, so that an `Option` of it takes four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Index(pub(super) NonZeroU32);

/// A queued request. An `Id` is never given to another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    pub(super) index: Index,
    pub(super) generation: u32,
}

impl Id {
    /// An index for a table beside the queue. As soon as this request has left the queue, another request can get the
    /// same index.
    pub fn slot(self) -> usize {
        self.index.position()
    }
}

impl Index {
    pub(super) fn position(self) -> usize {
        self.0.get() as usize - 1
    }
}
