//! Divides capacities among streams of Envoys. It has no clock and no network: time is passed in, in the milliseconds of
//! the pool.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use sluicegate_lease::Pool;

use super::assignment::Assignment;
use super::unit::{BucketUsage, Terms, Unit};
use crate::capacity::{BucketId, Capacities};

/// What Envoys are told about their buckets, by what they report.
#[derive(Debug)]
pub struct Quotas {
    capacities: Arc<Capacities>,
    streams: BTreeMap<u64, Stream>,
    units: BTreeMap<u64, Unit>,
    by_resource: BTreeMap<Box<str>, BTreeSet<u64>>,
    /// Buckets of lost streams whose Envoys have a name.
    lost: BTreeMap<Lost, u64>,
    /// Resources whose parts may have changed.
    changed: BTreeSet<Box<str>>,
    swept: u64,
    next: u64,
    /// The reign that parts were assigned in.
    fence: Option<u64>,
}

#[derive(Debug)]
struct Stream {
    name: Option<Box<str>>,
    domain: Option<Box<str>>,
    buckets: BTreeMap<Arc<BucketId>, u64>,
    orders: Vec<Order>,
    /// How many buckets were ignored since the last sweep that the Envoy was left to keep.
    spared: usize,
}

/// The name of an Envoy, the domain and the bucket.
type Lost = (Box<str>, Box<str>, Arc<BucketId>);

/// What an Envoy is told about a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The bucket.
    pub bucket: Arc<BucketId>,
    /// The assignment and its time to live in seconds. None to forget the bucket.
    pub assignment: Option<(Assignment, u64)>,
}

/// A stream of an Envoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(u64);

/// Why a stream has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportError {
    /// There are as many streams as there may be.
    ManyStreams,
    /// The first message names no domain.
    NoDomain,
    /// A later message names another domain.
    OtherDomain,
}

/// The most streams.
pub const MAX_STREAMS: usize = 10_000;
/// The most buckets of a stream with values that a `*` takes. Others are ignored.
pub const MAX_BUCKETS: usize = 1_000;
/// The most ignored buckets of a stream that its Envoy may keep while they are in use, from one sweep to the next.
///
/// An Envoy reports all that it keeps every 5 seconds: 500 of these and [`MAX_BUCKETS`], with the longest ids, are 3 MiB.
/// A bucket that the Envoy has to forget costs another message when the next request for it comes.
pub(super) const MOST_SPARED: usize = 100;
/// The most buckets of a message that are counted at once. The longest ids take 40 µs each, and others wait meanwhile.
pub const BUCKETS_AT_ONCE: usize = 16;
/// How many buckets all streams may have together, with those of lost streams, before a `*` takes no new value. With buckets
/// that the file names, there may be twice as many.
const MOST: usize = 100_000;
/// How often buckets are looked for that have ended or have too little, in milliseconds.
const SWEEP: u64 = 1_000;

impl Quotas {
    /// Divides these capacities.
    pub fn new(capacities: Arc<Capacities>) -> Self {
        Self {
            capacities,
            streams: BTreeMap::new(),
            units: BTreeMap::new(),
            by_resource: BTreeMap::new(),
            lost: BTreeMap::new(),
            changed: BTreeSet::new(),
            swept: 0,
            next: 0,
            fence: None,
        }
    }

    /// Follows the mastership of the pool. Call it before the pool is used.
    ///
    /// All streams end with the reign that assigned something to them, and are forgotten with all that they had: the next
    /// master learns that from the Envoys. Returns whether they have ended now.
    #[must_use = "streams may have ended"]
    pub fn follow(&mut self, fence: Option<u64>) -> bool {
        let has_ended = self.fence.is_some() && self.fence != fence;
        self.fence = fence;
        if has_ended {
            self.streams.clear();
            self.units.clear();
            self.by_resource.clear();
            self.lost.clear();
            self.changed.clear();
        }
        has_ended
    }

    /// Puts other capacities in force. Does nothing if they are in force already.
    pub fn set_capacities(&mut self, capacities: Arc<Capacities>) {
        if Arc::ptr_eq(&self.capacities, &capacities) {
            return;
        }
        self.capacities = capacities;
        for stream in self.streams.values_mut() {
            let Some(domain) = &stream.domain else { continue };
            stream.buckets.retain(|bucket, unit| {
                let Some(unit) = self.units.get_mut(unit) else { return false };
                let source = self.capacities.source(domain, bucket);
                let stays = unit.set_terms(source.map(|source| Terms::of(source, bucket)));
                if !stays {
                    // What it has had of the old capacity ends by itself. The next report begins on the new one.
                    unit.lose();
                    let bucket = Arc::clone(bucket);
                    stream.orders.push(Order { bucket, assignment: None });
                }
                stays
            });
        }
        self.changed.extend(self.by_resource.keys().cloned());
    }

    /// A stream begins. With a name, an Envoy that has lost its stream gets its parts back on the next one; without
    /// one, what it had stays held until its time to live has passed.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub fn open(&mut self, name: Option<&str>) -> Result<StreamId, ReportError> {
        if self.streams.len() >= MAX_STREAMS {
            return Err(ReportError::ManyStreams);
        }
        let name = name.map(Into::into);
        let (buckets, orders) = (BTreeMap::new(), Vec::new());
        self.next += 1;
        self.streams.insert(self.next, Stream { name, domain: None, buckets, orders, spared: 0 });
        Ok(StreamId(self.next))
    }

    /// A stream has ended. What its buckets had stays held until its time to live has passed.
    pub fn close(&mut self, StreamId(id): StreamId) {
        let Some(stream) = self.streams.remove(&id) else { return };
        for (bucket, number) in stream.buckets {
            let Some(unit) = self.units.get_mut(&number) else { continue };
            unit.lose();
            if let (Some(name), Some(domain)) = (&stream.name, &stream.domain) {
                self.lost.insert((name.clone(), domain.clone(), bucket), number);
            }
        }
    }

    /// A message has come on a stream. Returns how many buckets in it are not known or too many.
    ///
    /// # Errors
    ///
    /// The stream cannot go on.
    pub fn report(
        &mut self,
        now: u64,
        StreamId(id): StreamId,
        domain: &str,
        usages: impl IntoIterator<Item = (BucketId, BucketUsage)>,
        pool: &mut Pool,
    ) -> Result<usize, ReportError> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(0) };
        let domain = match &stream.domain {
            None if domain.is_empty() => return Err(ReportError::NoDomain),
            None => &*stream.domain.insert(domain.into()),
            Some(known) if domain.is_empty() || domain == &**known => known,
            Some(_) => return Err(ReportError::OtherDomain),
        }
        .clone();
        for number in stream.buckets.values() {
            let Some(unit) = self.units.get_mut(number) else { continue };
            if unit.message_came(now) {
                self.changed.insert(unit.terms.resource.clone());
            }
        }
        let (mut ignored, mut reported) = (0, Vec::new());
        for (bucket, used) in usages {
            match self.count(now, id, &domain, bucket, used) {
                Ok(number) => reported.push(number),
                Err(bucket) => {
                    ignored += 1;
                    self.ignore(id, bucket, used);
                }
            }
        }
        // One answer for each bucket, however often a message names it.
        reported.sort_unstable();
        reported.dedup();
        for number in reported {
            self.divide(now, number, true, pool);
        }
        Ok(ignored)
    }

    /// Clients choose the values of buckets, and an Envoy keeps a bucket for as long as nobody tells it to forget it.
    fn ignore(&mut self, id: u64, bucket: BucketId, used: BucketUsage) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let is_in_use = used.allowed > 0 || used.denied > 0;
        if is_in_use && stream.spared < MOST_SPARED {
            stream.spared += 1;
            return;
        }
        stream.orders.push(Order { bucket: Arc::new(bucket), assignment: None });
    }

    /// Writes down what a bucket has used. Returns the bucket if it is not known, or one too many.
    fn count(
        &mut self,
        now: u64,
        id: u64,
        domain: &str,
        bucket: BucketId,
        used: BucketUsage,
    ) -> Result<u64, BucketId> {
        let Some(stream) = self.streams.get_mut(&id) else { return Err(bucket) };
        if let Some((&number, unit)) = stream
            .buckets
            .get(&bucket)
            .and_then(|number| Some((number, self.units.get_mut(number)?)))
        {
            unit.count(now, used);
            self.changed.insert(unit.terms.resource.clone());
            return Ok(number);
        }
        let Some(source) = self.capacities.source(domain, &bucket) else { return Err(bucket) };
        let is_full = stream.buckets.len() >= MAX_BUCKETS || self.units.len() >= MOST;
        // The file bounds the buckets that it names on a stream. Values that clients choose must not take their places. Streams
        // that are lost leave both behind.
        if is_full && !source.1.is_exact() || self.units.len() >= 2 * MOST {
            return Err(bucket);
        }
        let terms = Terms::of(source, &bucket);
        let bucket = Arc::new(bucket);
        let lost = stream.name.clone().map(|name| (name, domain.into(), Arc::clone(&bucket)));
        let lost = lost.and_then(|key| self.lost.remove(&key));
        let resource = terms.resource.clone();
        let number = match lost.and_then(|number| Some((number, self.units.get_mut(&number)?))) {
            Some((number, unit)) if unit.terms.resource == resource => {
                // They may have changed while it was on no stream.
                unit.set_terms(Some(terms));
                unit.adopt(now, id);
                number
            }
            _ => {
                self.next += 1;
                let all = self.by_resource.entry(resource.clone()).or_default();
                let of = (Arc::clone(&bucket), terms);
                self.units.insert(self.next, Unit::new(now, (id, self.next), of, used, all.len()));
                all.insert(self.next);
                self.next
            }
        };
        stream.buckets.insert(bucket, number);
        self.changed.insert(resource);
        Ok(number)
    }

    /// Divides anew what has changed. Call it each 100 ms or so.
    pub fn tick(&mut self, now: u64, pool: &mut Pool) {
        if now >= self.swept.saturating_add(SWEEP) {
            self.swept = now;
            self.sweep(now, pool);
        }
        for resource in std::mem::take(&mut self.changed) {
            let Some(numbers) = self.by_resource.get(&resource) else { continue };
            for number in numbers.clone() {
                self.divide(now, number, false, pool);
            }
        }
    }

    fn divide(&mut self, now: u64, number: u64, renew: bool, pool: &mut Pool) {
        let Some(unit) = self.units.get_mut(&number) else { return };
        let assignment = unit.divide(now, renew, pool);
        if assignment.is_none() {
            return;
        }
        let stream = unit.stream.and_then(|stream| self.streams.get_mut(&stream));
        if let Some(stream) = stream {
            stream.orders.push(Order { bucket: Arc::clone(&unit.bucket), assignment });
        }
    }

    fn sweep(&mut self, now: u64, pool: &mut Pool) {
        self.streams.values_mut().for_each(|stream| stream.spared = 0);
        let mut over = Vec::new();
        for (number, unit) in &mut self.units {
            if unit.is_over(now) {
                unit.release(now, pool);
                self.changed.insert(unit.terms.resource.clone());
                if !unit.is_alive(now) {
                    over.push(*number);
                }
            } else if unit.is_alive(now) && unit.is_idle(now) {
                unit.abandon();
                let stream = unit.stream.and_then(|stream| self.streams.get_mut(&stream));
                if let Some(stream) = stream {
                    let bucket = Arc::clone(&unit.bucket);
                    stream.orders.push(Order { bucket, assignment: None });
                }
            } else if unit.is_alive(now) && unit.lacks() {
                // Clients of leases may have given something back.
                self.changed.insert(unit.terms.resource.clone());
            }
        }
        if over.is_empty() {
            return;
        }
        for number in over {
            self.forget(number);
        }
        self.lost.retain(|_, number| self.units.contains_key(number));
    }

    fn forget(&mut self, number: u64) {
        let Some(unit) = self.units.remove(&number) else { return };
        if let Some(all) = self.by_resource.get_mut(&unit.terms.resource) {
            all.remove(&number);
            if all.is_empty() {
                self.by_resource.remove(&unit.terms.resource);
            }
        }
        if let Some(stream) = unit.stream.and_then(|stream| self.streams.get_mut(&stream)) {
            stream.buckets.remove(&unit.bucket);
        }
    }

    /// What the Envoys have to be told, and which of them.
    pub fn orders(&mut self) -> impl Iterator<Item = (StreamId, Vec<Order>)> {
        self.streams
            .iter_mut()
            .filter(|(_, stream)| !stream.orders.is_empty())
            .map(|(id, stream)| (StreamId(*id), std::mem::take(&mut stream.orders)))
    }

    /// The reign of which [`follow`](Self::follow) was told.
    pub fn fence(&self) -> Option<u64> {
        self.fence
    }

    /// How many streams there are.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// How many buckets there are, with those of lost streams.
    pub fn buckets(&self) -> usize {
        self.units.len()
    }
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ManyStreams => "the server has no room for another stream",
            Self::NoDomain => "the first message names no domain",
            Self::OtherDomain => "the domain of a stream cannot change",
        })
    }
}

impl Error for ReportError {}
