use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use sluicegate_core::ManualClock;

/// Events in the order of their times, and a clock that shows the time of the last one.
///
/// Times are microseconds since the Unix epoch. At one time, what ends comes before what begins, so that a place is free for a
/// request that comes when another one ends.
pub(crate) struct Timeline<T> {
    clock: ManualClock,
    events: BinaryHeap<Reverse<Event<T>>>,
    ended: u64,
}

struct Event<T> {
    at: u64,
    /// `None` for what begins.
    end: Option<u64>,
    /// The place among what begins at this time.
    place: u64,
    what: T,
}

impl<T> Timeline<T> {
    /// Moves `clock`, which may not go back.
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self { clock: clock.clone(), events: BinaryHeap::new(), ended: 0 }
    }

    /// Something begins. Of what begins at the same time, the one with the lower place is first.
    pub(crate) fn begin(&mut self, at: u64, place: u64, what: T) {
        self.events.push(Reverse(Event { at, end: None, place, what }));
    }

    /// Something ends. What is added first ends first at the same time.
    pub(crate) fn end(&mut self, at: u64, what: T) {
        self.ended += 1;
        self.events.push(Reverse(Event { at, end: Some(self.ended), place: 0, what }));
    }

    /// The next event, whose time the clock shows then. It never goes back.
    pub(crate) fn next(&mut self) -> Option<(u64, T)> {
        let Reverse(Event { at, what, .. }) = self.events.pop()?;
        let at = at.max(self.clock.now());
        self.clock.set(Duration::from_micros(at));
        Some((at, what))
    }

    /// The next event that is due by `at`. Without one, the clock shows `at` then, unless it shows a later time.
    pub(crate) fn next_until(&mut self, at: u64) -> Option<(u64, T)> {
        if self.events.peek().is_some_and(|Reverse(event)| event.at <= at) {
            return self.next();
        }
        if at > self.clock.now() {
            self.clock.set(Duration::from_micros(at));
        }
        None
    }

    /// How many events are to come.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }
}

impl<T> Event<T> {
    fn order(&self) -> (u64, bool, u64, Option<u64>) {
        (self.at, self.end.is_none(), self.place, self.end)
    }
}

impl<T> PartialEq for Event<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<T> Eq for Event<T> {}

impl<T> PartialOrd for Event<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Event<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_comes_before_what_begins_at_the_same_time() {
        let clock = ManualClock::at(Duration::ZERO);
        let mut timeline = Timeline::new(&clock);
        timeline.begin(5, 1, "second");
        timeline.begin(5, 0, "first");
        timeline.end(5, "ends");
        timeline.end(5, "ends later");
        timeline.begin(3, 7, "before");
        let order: Vec<_> = std::iter::from_fn(|| timeline.next()).collect();
        let expected = [(3, "before"), (5, "ends"), (5, "ends later"), (5, "first"), (5, "second")];
        assert_eq!(order, expected);
        assert_eq!((clock.now(), timeline.len()), (5, 0));
    }

    #[test]
    fn the_clock_never_goes_back() {
        let clock = ManualClock::at(Duration::from_micros(10));
        let mut timeline = Timeline::new(&clock);
        timeline.begin(3, 0, ());
        assert_eq!(timeline.next(), Some((10, ())));
        assert_eq!(clock.now(), 10);
    }
}
