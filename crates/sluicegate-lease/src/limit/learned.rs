//! What a client wants, learned from what is asked of it.
//!
//! Events are counted in ten slots of a window that slides by a slot. So nine events in a second are nine a second,
//! whether they are admitted, refused or wait. (Doorman divides by n (n + 1) / 2 and not by n.) A rise counts as soon
//! as the window has seen it; a fall is followed by a 32nd a slot, so that a pause between two requests is no reason to
//! give capacity away. Without events, nothing is left after 13 windows for one event, and after 80 for 10⁹.

use crate::amount::Amount;

/// Slots in a window.
const SLOTS: usize = 10;
/// After this many slots without an event, whatever was learned is forgotten.
const FORGOTTEN: u64 = 1_024;
/// What is left of a demand that falls, below which it is none: one event in sixty windows, in millionths.
const LEAST: u64 = 1_000_000 / 60;

/// Learns from events. Time is passed in, in microseconds; the state does not grow.
#[derive(Debug, Clone)]
pub(super) struct Learned {
    kind: Kind,
    /// The length of a slot.
    slot: u64,
    slots: [u64; SLOTS],
    /// The number of the present slot.
    present: u64,
    /// What was learned up to its beginning, in millionths.
    held: u64,
}

/// How events make a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Events in a window.
    Sum,
    /// The most at once in a window.
    Peak,
}

impl Learned {
    /// Learns by a window of `window` microseconds.
    pub(super) fn new(kind: Kind, window: u64) -> Self {
        let slot = (window / SLOTS as u64).max(1);
        Self { kind, slot, slots: [0; SLOTS], present: 0, held: 0 }
    }

    /// Counts what an event asks for.
    pub(super) fn sum(&mut self, now: u64, cost: u64) {
        self.turn(now, 0);
        let slot = self.present_slot();
        *slot = slot.saturating_add(cost);
    }

    /// So much was needed at once; `lasting` is what is in use, and stays so.
    pub(super) fn peak(&mut self, now: u64, needed: u64, lasting: u64) {
        self.turn(now, lasting);
        let slot = self.present_slot();
        *slot = needed.max(*slot);
    }

    /// What is wanted: events in a window, or the most at once.
    pub(super) fn wants(&mut self, now: u64, lasting: u64) -> Amount {
        self.turn(now, lasting);
        Amount::from_millionths(self.held.max(self.millionths()))
    }

    /// The number of the slot that `now` is in.
    pub(super) fn slot_of(&self, now: u64) -> u64 {
        now / self.slot
    }

    /// Goes on to the slot of `now`. When the clock steps back, what was counted stays.
    fn turn(&mut self, now: u64, lasting: u64) {
        let next = self.slot_of(now);
        let passed = next.saturating_sub(self.present);
        self.present = next;
        if passed > FORGOTTEN {
            (self.slots, self.held) = ([0; SLOTS], 0);
            *self.present_slot() = lasting;
            return;
        }
        for before in (0..passed).rev() {
            // The window that ends with the slot before is complete.
            let falling = self.held - (self.held / 32 + 1).min(self.held);
            let falling = if falling < LEAST { 0 } else { falling };
            self.held = self.millionths().max(falling);
            self.slots[slot_index(next - before)] = lasting;
        }
    }

    fn present_slot(&mut self) -> &mut u64 {
        &mut self.slots[slot_index(self.present)]
    }

    fn millionths(&self) -> u64 {
        let all = match self.kind {
            Kind::Sum => self.slots.iter().fold(0, |sum: u64, slot| sum.saturating_add(*slot)),
            Kind::Peak => self.slots.iter().copied().max().unwrap_or(0),
        };
        Amount::units(all).millionths()
    }
}

fn slot_index(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000;
    const START: u64 = 1_700_000_000 * SECOND;

    fn rate() -> Learned {
        Learned::new(Kind::Sum, SECOND)
    }

    /// Events spread evenly over a second, `second` seconds after the start.
    fn events(learned: &mut Learned, second: u64, count: u64) {
        for event in 0..count {
            learned.sum(START + second * SECOND + event * SECOND / count, 1);
        }
    }

    fn wants(learned: &mut Learned, second: u64) -> f64 {
        learned.wants(START + second * SECOND, 0).as_f64()
    }

    #[test]
    fn nine_events_in_a_second_are_nine_a_second() {
        let mut learned = rate();
        events(&mut learned, 0, 9);
        assert_eq!(wants(&mut learned, 1), 9.0);
        for second in 1..60 {
            events(&mut learned, second, 9);
            assert_eq!(wants(&mut learned, second + 1), 9.0, "second {second}");
        }
    }

    #[test]
    fn nine_events_at_once_are_nine_a_second_too() {
        let mut learned = rate();
        learned.sum(START, 9);
        assert_eq!(wants(&mut learned, 0), 9.0);
        assert_eq!(wants(&mut learned, 1), 9.0);
    }

    #[test]
    fn a_spike_is_learned_within_a_second_wherever_the_client_looks() {
        for look in 0..10 {
            let mut learned = rate();
            (0..20).for_each(|second| events(&mut learned, second, 10));
            events(&mut learned, 20, 100);
            // It may look at any moment after the second of the spike, also for the first time.
            let seen = learned.wants(START + 21 * SECOND + look * SECOND / 10, 0).as_f64();
            assert!((70.0..=100.0).contains(&seen), "{seen}");
        }
    }

    #[test]
    fn an_idle_client_wants_less_each_second_and_then_nothing() {
        let mut learned = rate();
        (0..5).for_each(|second| events(&mut learned, second, 1_000));
        let seen: Vec<f64> = (6..80).map(|second| wants(&mut learned, second)).collect();
        assert!(seen.windows(2).all(|pair| pair[1] < pair[0] || pair[1] == 0.0), "{seen:?}");
        assert!(seen[10] < 60.0 && seen[10] > 0.0, "{seen:?}");
        assert_eq!(seen.last(), Some(&0.0));
    }

    #[test]
    fn one_event_in_three_seconds_is_wanted_all_the_time() {
        let mut learned = rate();
        for second in 0..60 {
            if second % 3 == 0 {
                events(&mut learned, second, 1);
            }
            assert!(wants(&mut learned, second + 1) >= 1.0 / 3.0, "second {second}");
        }
    }

    #[test]
    fn the_most_in_use_or_waiting_is_wanted_of_a_gauge() {
        let mut learned = Learned::new(Kind::Peak, SECOND);
        learned.peak(START, 3, 3);
        learned.peak(START + 1, 7, 3);
        assert_eq!(learned.wants(START + SECOND / 2, 3).as_f64(), 7.0);
        // What is in use for long is wanted for as long.
        assert_eq!(learned.wants(START + 500 * SECOND, 3).as_f64(), 3.0);
        assert_eq!(learned.wants(START + 1_000 * SECOND, 3).as_f64(), 3.0);
        assert_eq!(learned.wants(START + 2_000 * SECOND, 0).as_f64(), 0.0);
    }

    #[test]
    fn absurd_numbers_and_clocks_do_not_overflow() {
        let mut learned = rate();
        learned.sum(u64::MAX, u64::MAX);
        learned.sum(u64::MAX, u64::MAX);
        assert_eq!(learned.wants(u64::MAX, 0), Amount::MAX);
        // The clock steps back to its beginning: nothing is lost, and it goes on.
        assert_eq!(learned.wants(0, 0), Amount::MAX);
        assert!(learned.wants(100 * SECOND, 0) < Amount::MAX);
        assert_eq!(learned.wants(u64::MAX, 0), Amount::ZERO);
    }

    proptest! {
        /// Whatever comes in, no more is wanted than came in the busiest window, and no less than in the last one.
        #[test]
        fn what_is_wanted_is_between_the_busiest_window_and_the_last(
            gaps in prop::collection::vec((0..400_000_u64, 1..9_u64), 1..200)
        ) {
            let (mut learned, mut now, mut all) = (rate(), START, Vec::new());
            for (gap, cost) in gaps {
                now += gap;
                learned.sum(now, cost);
                all.push((now, cost));
                let wants = learned.wants(now, 0).as_f64();
                let within = |end: u64, window: u64| -> u64 {
                    let inside = |at: u64| at <= end && end - at < window;
                    all.iter().filter(|(at, _)| inside(*at)).map(|(_, cost)| cost).sum()
                };
                let busiest = all.iter().map(|(at, _)| within(*at, SECOND)).max().unwrap_or(0);
                let last = within(now, SECOND * 9 / 10);
                prop_assert!(wants <= busiest as f64, "{wants} of {busiest}");
                prop_assert!(wants >= last as f64, "{wants} of {last}");
            }
        }
    }
}
