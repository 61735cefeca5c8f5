//! The processes that share limits, and the part of the limits that this process may spend.

mod demand;
mod level;
mod switch;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use self::demand::{Want, fair_parts};
pub use self::level::WaterLevel;
use self::switch::Switch;
use crate::clock::Clock;
use crate::limit::{Part, bounded};

/// The processes that share limits, and the part that falls to this one. A [`Share`](super::Share) reads the part with
/// each request, which is one atomic read.
///
/// | part | comes from |
/// | --- | --- |
/// | fixed | [`Fleet::fixed`] |
/// | set by hand | [`Fleet::assigned`], and [`see`](Self::see) whenever the number changes |
/// | by heartbeats in Redis | `Redis::fleet` of `sluicegate-redis`: equal parts, or parts by weight and demand |
/// | by the addresses of a name, a number in a file, or a function | `sluicegate_client::fleet` |
/// | by a source of your own | [`Fleet::new`], and [`see`](Self::see) or [`see_part`](Self::see_part) |
///
/// Sources that run by themselves return a [`Membership`], which leaves the fleet when it is dropped.
///
/// The leases of `sluicegate-lease` and those of `sluicegate-redis` are another thing: there a server counts what it
/// has handed out, and no process knows how many others there are.
///
/// # The bound
///
/// The parts of all members together are never more than the whole, as long as every member learns of a change within
/// half of the bound: of another one that joined, and that it is itself no longer counted. A member that joins has
/// nothing until the bound is over; a part shrinks at once, and grows when nothing smaller was seen for the bound. If
/// members learn later than that, they spend more than the whole for as long as they disagree. Three members that
/// believe there are two spend 3/2 of the whole.
///
/// A longer bound is safer, but wastes more: the part of a member that has left or has just joined is not spent for
/// that time.
///
/// Clones share their state.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::ManualClock;
/// use sluicegate::store::Fleet;
///
/// let clock = ManualClock::new();
/// let fleet = Fleet::by_clock(Duration::from_secs(2), &clock);
/// fleet.see(4);
/// assert_eq!(fleet.part(), None); // it has just joined
/// clock.advance(Duration::from_secs(2));
/// assert_eq!(fleet.part().unwrap().as_ratio(), (1, 4));
/// fleet.see(5);
/// assert_eq!(fleet.part().unwrap().as_ratio(), (1, 5));
/// ```
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

struct Inner {
    /// The bits of the part, above the tick at which it changes.
    word: AtomicU64,
    clock: Clock,
    /// When it was made, by the clock.
    base: u64,
    bound: Duration,
    is_fixed: bool,
    switch: Mutex<Switch>,
    /// The cost of all requests, whether or not they were admitted.
    wanted: AtomicU64,
}

/// A tick is 2^16 microseconds, 65 ms: a part grows that much later than it could, and ends in time. The word has room for
/// 8 years.
const TICK_BITS: u32 = 16;
/// In place of a tick: the part stays as it is.
const NO_CHANGE: u32 = u32::MAX;

impl Fleet {
    /// Nothing, until a source has seen this process among the members and `bound` is over.
    ///
    /// # Panics
    ///
    /// When the bound is zero, or ten minutes and more.
    #[track_caller]
    pub fn new(bound: Duration) -> Self {
        Self::by_clock(bound, Clock::machine())
    }

    /// Like [`new`](Self::new), by the clock of tests. The store has to go by the same clock.
    ///
    /// # Panics
    ///
    /// When the bound is zero, or ten minutes and more.
    #[track_caller]
    pub fn by_clock(bound: Duration, clock: impl Into<Clock>) -> Self {
        assert!(!bound.is_zero(), "a bound of zero: members never learn of each other in no time");
        assert!(
            bound < Duration::from_secs(600),
            "a bound of ten minutes and more would leave a new member idle for as long"
        );
        Self::with(clock.into(), bound, false)
    }

    fn with(clock: Clock, bound: Duration, is_fixed: bool) -> Self {
        let fleet = Self(Arc::new(Inner {
            word: AtomicU64::new(NO_CHANGE.into()),
            base: clock.now(),
            clock,
            bound,
            is_fixed,
            switch: Mutex::new(Switch::new(bound.as_micros() as u64)),
            wanted: AtomicU64::new(0),
        }));
        fleet.refresh();
        fleet
    }

    /// The part `parts / of` for ever, such as one of four processes. What counts requests, other than a bucket,
    /// admits at least one.
    ///
    /// One of `n` is exact. Other parts are rounded down, by less than one in 2^26.
    ///
    /// # Panics
    ///
    /// If the part is nothing, or more than the whole, or less than one of 2^27.
    #[track_caller]
    pub fn fixed(parts: u64, of: u64) -> Self {
        assert!(parts > 0, "a part of nothing would admit nothing");
        assert!(parts <= of, "a part is not more than the whole");
        let part = Part::of(parts, of).expect("a part is at least one of 2^27");
        let fleet = Self::with(Clock::machine(), Duration::ZERO, true);
        fleet.lock().fix(part);
        fleet.refresh();
        fleet
    }

    /// One of `count` members from the first request on, for a number that is set by hand.
    ///
    /// You promise that all others count this one already. Later numbers are told by [`see`](Self::see).
    ///
    /// # Panics
    ///
    /// When the count is zero, or the bound is zero, or ten minutes and more.
    #[track_caller]
    pub fn assigned(count: u64, bound: Duration) -> Self {
        assert!(count > 0, "no members: this process is one");
        let fleet = Self::new(bound);
        fleet.open();
        fleet.see(count);
        fleet
    }

    /// Spends by the next view at once, and not after the bound: you promise that all others count this one already.
    pub fn open(&self) {
        self.lock().open();
    }

    /// There are `count` members, and this is one of them. 0 if it is none: it then has nothing, and begins anew when
    /// it is one again. It has nothing either if its part would be less than one of 2^27.
    pub fn see(&self, count: u64) {
        self.see_part(Part::of(1, count).filter(|_| count > 0));
    }

    /// This member gets `part`, `None` if it is no member. The parts that one view gives to all members must not be more
    /// than the whole together.
    pub fn see_part(&self, part: Option<Part>) {
        self.see_until(part, u64::MAX);
    }

    /// Like [`see_part`](Self::see_part), for a view that counts for `valid` and no longer: a member that cannot reach
    /// its source then stops, before others take over what is its part. It begins anew with the next view.
    pub fn see_part_for(&self, part: Option<Part>, valid: Duration) {
        let valid = u64::try_from(valid.as_micros()).unwrap_or(u64::MAX);
        self.see_until(part, bounded(self.0.clock.now().saturating_add(valid)));
    }

    fn see_until(&self, part: Option<Part>, expires: u64) {
        let mut switch = self.lock();
        switch.see(self.0.clock.now(), part, expires);
        self.publish(&mut switch);
    }

    /// What this member may spend at the moment; `None` for nothing.
    pub fn part(&self) -> Option<Part> {
        self.refresh();
        self.view().0
    }

    /// How much longer the part stays as it is, if no source tells otherwise. `None` for ever.
    pub fn changes_in(&self) -> Option<Duration> {
        let now = self.0.clock.now();
        let until = self.lock().spend(now).until;
        (until != u64::MAX).then(|| Duration::from_micros(until.saturating_sub(now)))
    }

    /// Whether the part never changes.
    #[inline]
    pub(super) fn is_fixed(&self) -> bool {
        self.0.is_fixed
    }

    /// Within what time all members learn of a change.
    pub fn bound(&self) -> Duration {
        self.0.bound
    }

    /// The cost of all requests so far to shares that [count it](super::Share::count_wanted), admitted or not: what
    /// a source that divides by demand publishes.
    pub fn wanted(&self) -> u64 {
        self.0.wanted.load(Ordering::Relaxed)
    }

    pub(super) fn want(&self, cost: u64) {
        self.0.wanted.fetch_add(cost, Ordering::Relaxed);
    }

    /// The part, and the tick from which on to [refresh](Self::refresh) it.
    #[inline]
    pub(super) fn view(&self) -> (Option<Part>, u32) {
        // The part and the tick at which it ends are one word, so they always belong together. Nothing else is
        // published with it, so relaxed order is enough.
        let word = self.0.word.load(Ordering::Relaxed);
        (Part::from_bits((word >> 32) as u32), word as u32)
    }

    /// Whether the part may have changed by `now` without a source telling so.
    #[inline]
    pub(super) fn is_due(&self, now: u64, due: u32) -> bool {
        due != NO_CHANGE && self.tick(now) >= due
    }

    #[inline]
    fn tick(&self, now: u64) -> u32 {
        (now.saturating_sub(self.0.base) >> TICK_BITS).min((NO_CHANGE - 1).into()) as u32
    }

    /// Works out the part at this moment.
    #[cold]
    pub(super) fn refresh(&self) {
        self.publish(&mut self.lock());
    }

    /// Has no part from now on, whatever a source still tells: its last look may come late.
    fn leave(&self) {
        let mut switch = self.lock();
        switch.leave();
        self.publish(&mut switch);
    }

    /// Under the lock, so that nobody publishes an older part over a newer one.
    fn publish(&self, switch: &mut Switch) {
        let spend = switch.spend(self.0.clock.now());
        let due = match spend.until {
            u64::MAX => NO_CHANGE,
            until => {
                // In the tick after the one in which it grows, it has grown.
                let grown = self.tick(until).saturating_add(1);
                // Spent for longer than its view counts, it would be more than the whole. So each request works it out in the
                // tick in which that ends.
                spend.part.map_or(grown, |_| grown.min(self.tick(switch.expires)))
            }
        };
        let part = spend.part.map_or(0, Part::to_bits);
        self.0.word.store(u64::from(part) << 32 | u64::from(due), Ordering::Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Switch> {
        self.0.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.view().0;
        f.debug_struct("Fleet")
            .field("part", &part)
            .field("bound", &self.0.bound)
            .finish_non_exhaustive()
    }
}

/// This process as a member of a [`Fleet`], for as long as a source tells it of the others. Dropped, it leaves: the
/// process has no part from then on.
pub struct Membership {
    fleet: Fleet,
    source: Option<Box<dyn Any + Send + Sync>>,
}

impl Membership {
    /// For a source of your own: `source` ends it when it is dropped, which is before the fleet is left.
    pub fn new(fleet: Fleet, source: impl Send + Sync + 'static) -> Self {
        Self { fleet, source: Some(Box::new(source)) }
    }

    /// What part is left to this process, for a [`Share`](crate::store::Share).
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.source = None;
        self.fleet.leave();
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Membership").field(&self.fleet).finish()
    }
}
