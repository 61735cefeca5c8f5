//! A calendar of events: a timing wheel (Varghese and Lauck, 1987) with a slot for each of the next milliseconds, and a
//! sorted list of what comes later.

use std::collections::{BTreeMap, VecDeque};

/// Events by time. Those of one millisecond come in the order in which they were planned.
pub(crate) struct Wheel<E> {
    slots: Vec<VecDeque<E>>,
    later: BTreeMap<u64, VecDeque<E>>,
    now: u64,
}

/// Most events come within this many milliseconds.
const SLOTS: u64 = 8_192;

impl<E> Wheel<E> {
    pub(crate) fn new() -> Self {
        let slots = (0..SLOTS).map(|_| VecDeque::new()).collect();
        Self { slots, later: BTreeMap::new(), now: 0 }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Plans an event. One in the past comes now.
    pub(crate) fn at(&mut self, time: u64, event: E) {
        let time = time.max(self.now);
        match time - self.now < SLOTS {
            true => self.slot(time).push_back(event),
            false => self.later.entry(time).or_default().push_back(event),
        }
    }

    /// The next event of this millisecond.
    pub(crate) fn next(&mut self) -> Option<E> {
        let now = self.now;
        self.slot(now).pop_front()
    }

    /// Goes on to the next millisecond.
    pub(crate) fn advance(&mut self) {
        self.now += 1;
        if self.later.first_key_value().is_some_and(|(time, _)| *time <= self.now) {
            let (time, mut due) = self.later.pop_first().expect("there is a first one");
            // They were planned before everything in the slot.
            due.append(self.slot(time));
            *self.slot(time) = due;
        }
    }

    fn slot(&mut self, time: u64) -> &mut VecDeque<E> {
        &mut self.slots[(time % SLOTS) as usize]
    }
}
