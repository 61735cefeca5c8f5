//! What a client wants, learned from what is asked of it.
//!
//! Events are counted in ten slots of a window that slides by a slot. So nine events in a second are nine a second,
//! whether they are admitted, refused or wait. (Doorman divides by n (n + 1) / 2 and not by n.) A rise counts as soon
//! as the window has seen it; a fall is followed by a 32nd a slot, so that a pause between two requests is no reason to
//! give capacity away. Without events, nothing is left after 13 windows for one event, and after 90 for 10⁹.
//!
//! A stream of events that stops is another matter: soon, chance is no explanation any more. When ten events are missing, a
//! sixteenth is wanted, and a sixteenth of that when twice as many are. What the stream wanted is remembered, and wanted
//! again with its next event. So clients that are busy in turns each get what the others leave.

use crate::amount::Amount;

/// Slots in a window.
const SLOTS: usize = 10;
/// After this many slots without an event, whatever was learned is forgotten.
const FORGOTTEN: u64 = 1_024;
/// What is left of a demand that falls, below which it is none: one event in sixty windows, in millionths.
const LEAST: u64 = 1_000_000 / 60;
/// Twice as many events of a stream are missing by chance once in 20,000 times.
const BY_CHANCE: u64 = 5;
/// How many times the demand of a stream falls to a sixteenth. What is left lets the first events pass when it goes on.
const FALLS: u32 = 2;
/// How many slots a stream that has stopped is remembered for, nearly in full.
const REMEMBERED: u64 = 100;

/// Learns from events. Time is passed in, in microseconds; the state does not grow.
#[derive(Debug, Clone)]
pub(super) struct DemandEstimate {
    kind: Kind,
    /// The length of a slot.
    slot: u64,
    slots: [u64; SLOTS],
    /// Events in each slot.
    events: [u64; SLOTS],
    /// The number of the present slot.
    present: u64,
    /// What was learned up to its beginning, in millionths.
    held: u64,
    /// When the last event came.
    last: u64,
    /// What an event of a stream asks for; `None` if events come now and then, or all at once.
    stream: Option<u64>,
    /// What was wanted when the last slot with an event was complete.
    heard: u64,
    /// The longest time between two events of late, if it is shorter than half a window.
    gap: u64,
    /// Complete slots without an event since.
    quiet: u64,
}

/// How events make a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Events in a window.
    Sum,
    /// The most at once in a window.
    Peak,
}

impl DemandEstimate {
    /// Learns by a window of `window` microseconds.
    pub(super) fn new(kind: Kind, window: u64) -> Self {
        let slot = (window / SLOTS as u64).max(1);
        Self {
            kind,
            slot,
            slots: [0; SLOTS],
            events: [0; SLOTS],
            present: 0,
            held: 0,
            last: 0,
            stream: None,
            heard: 0,
            gap: 0,
            quiet: 0,
        }
    }

    /// Counts what an event asks for. Returns whether it ends a silence.
    pub(super) fn sum(&mut self, now: u64, cost: u64) -> bool {
        self.turn(now, 0);
        let slot = self.present_slot();
        *slot = slot.saturating_add(cost);
        self.events[slot_index(self.present)] += 1;
        let was_silent = self.silence(now) > 0;
        // Gaps of half a window and more are pauses. Counted as the rhythm of the stream, they would hide its end.
        let gap = now.saturating_sub(self.last);
        if gap < self.slot * SLOTS as u64 / 2 {
            self.gap = self.gap.max(gap);
        }
        self.last = now;
        was_silent
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
        let wanted = self.held.max(self.millionths());
        Amount::from_millionths(fallen(wanted, self.falls(now)))
    }

    /// In how many microseconds less than `bound` may be wanted if no event comes. `None` if that is not to be expected soon.
    #[cfg(any(feature = "client", test))]
    pub(super) fn falls_below(&mut self, now: u64, bound: Amount) -> Option<u64> {
        self.turn(now, 0);
        // It may become a stream meanwhile.
        let Some(unit) = self.stream else { return Some(self.slot * SLOTS as u64 / 2) };
        let wanted = self.held.max(self.millionths());
        let falls = (0..=FALLS).find(|falls| fallen(wanted, *falls) <= bound.millionths())?;
        // Each fall asks for twice as many missing events as the one before.
        let missing = u128::from(BY_CHANCE) << falls;
        let silence = missing * self.time_for(unit) / u128::from(self.heard.max(1)) + 1;
        let silence = u64::try_from(silence).unwrap_or(u64::MAX).max(self.pause() + 1);
        Some(self.last.saturating_add(silence).saturating_sub(now))
    }

    /// How often the demand of a stream has fallen to a sixteenth since its last event. It falls in steps, so that a server
    /// need not hear of it all the time.
    fn falls(&self, now: u64) -> u32 {
        let (Some(unit), silence) = (self.stream, self.silence(now)) else { return 0 };
        // By a Poisson process of this rate, none of `missing` events comes with the chance e^-missing: once in 20,000
        // times for ten.
        let missing = u128::from(self.heard) * u128::from(silence) / self.time_for(unit).max(1);
        (missing / u128::from(BY_CHANCE)).checked_ilog2().unwrap_or(0).min(FALLS)
    }

    /// Microseconds since the last event, if that are many.
    fn silence(&self, now: u64) -> u64 {
        let silence = now.saturating_sub(self.last);
        if silence > self.pause() { silence } else { 0 }
    }

    /// A time without an event that is no silence: events may come several at once.
    fn pause(&self) -> u64 {
        (self.slot / 2).max(self.gap.saturating_add(self.gap / 2))
    }

    /// Microseconds in which one event comes that asks for `unit`, where a millionth is wanted in a window.
    fn time_for(&self, unit: u64) -> u128 {
        u128::from(Amount::units(unit).millionths()) * u128::from(self.slot) * SLOTS as u128
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
        // The loop below takes a step for each slot, so a long absence needs a bound.
        if passed > FORGOTTEN {
            (self.slots, self.events, self.held) = ([0; SLOTS], [0; SLOTS], 0);
            self.stream = None;
            *self.present_slot() = lasting;
            return;
        }
        for before in (0..passed).rev() {
            // The window that ends with the slot before is complete.
            self.complete(next - before - 1);
            // A stream that pauses is expected to go on as it was. One that has ended for good would keep capacity from others.
            let is_remembered = self.stream.is_some() && (1..=REMEMBERED).contains(&self.quiet);
            let part = if is_remembered { 256 } else { 32 };
            let falling = self.held - (self.held / part + 1).min(self.held);
            let falling = if falling < LEAST { 0 } else { falling };
            self.held = self.millionths().max(falling);
            self.slots[slot_index(next - before)] = lasting;
            self.events[slot_index(next - before)] = 0;
        }
    }

    /// Finds out whether events come in a stream: in at least half of the slots of a window.
    fn complete(&mut self, slot: u64) {
        if self.events[slot_index(slot)] == 0 {
            self.quiet += 1;
            return;
        }
        self.quiet = 0;
        // It forgets slowly, so that a stream that has become denser is not waited for as long as before.
        self.gap -= self.gap / 16;
        self.heard = self.held.max(self.millionths());
        let events: u64 = self.events.iter().sum();
        let asked = self.slots.iter().fold(0, |sum: u64, slot| sum.saturating_add(*slot));
        let filled = self.events.iter().filter(|events| **events > 0).count();
        self.stream = (filled * 2 >= SLOTS).then(|| (asked / events).max(1));
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

fn fallen(wanted: u64, falls: u32) -> u64 {
    wanted.checked_shr(4 * falls).unwrap_or(0)
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

    fn rate() -> DemandEstimate {
        DemandEstimate::new(Kind::Sum, SECOND)
    }

    /// Events spread evenly over a second, `second` seconds after the start.
    fn events(learned: &mut DemandEstimate, second: u64, count: u64) {
        for event in 0..count {
            learned.sum(START + second * SECOND + event * SECOND / count, 1);
        }
    }

    fn wants(learned: &mut DemandEstimate, second: u64) -> f64 {
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
            let spike = START + 20 * SECOND;
            (0..100 + look * 10).for_each(|event| _ = learned.sum(spike + event * SECOND / 100, 1));
            // It may look at any moment after the first second of the spike, also for the first time.
            let seen = learned.wants(spike + SECOND + look * SECOND / 10, 0).as_f64();
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
    fn a_stream_that_stops_wants_little_soon_and_everything_with_its_next_event() {
        for (each_second, cost) in [(200, 1), (1_000, 7), (20, 50), (10_000, 1)] {
            let mut learned = rate();
            let all = (each_second * cost) as f64;
            for event in 0..each_second * 5 {
                learned.sum(START + event * SECOND / each_second, cost);
            }
            let last = START + (each_second * 5 - 1) * SECOND / each_second;
            let gap = SECOND / each_second;
            let soon = (24 * gap).max(SECOND / 20 + 1);
            let falls = learned.falls_below(last, Amount::from_f64(all / 4.0).unwrap()).unwrap();
            assert!(falls <= soon, "{falls} of {soon}");
            // A few that are missing prove nothing.
            assert!(learned.wants(last + 3 * gap, 0).as_f64() > all * 0.99);
            let left = learned.wants(last + falls, 0).as_f64();
            assert!(left <= all / 4.0, "{left} of {all}");
            let left = learned.wants(last + soon, 0).as_f64();
            assert!(left <= all / 15.0, "{left} of {all}");
            learned.sum(last + 2 * SECOND, cost);
            let again = learned.wants(last + 2 * SECOND, 0).as_f64();
            assert!(again > all * 0.85, "{again} of {all}");
        }
    }

    #[test]
    fn a_stream_of_which_many_events_come_at_once_does_not_stop_in_between() {
        for gap in [70_000, 111_000, 150_000, 190_000] {
            let mut learned = rate();
            for step in 0..100 {
                let now = START + step * gap;
                if step > 20 {
                    let wants = learned.wants(now - 1, 0).as_f64();
                    assert!(wants >= 100.0, "{wants} at {step} of {gap}");
                }
                (0..20).for_each(|_| _ = learned.sum(now, 1));
            }
        }
    }

    #[test]
    fn events_that_come_all_at_once_are_wanted_in_between() {
        let mut learned = rate();
        for second in 0..20 {
            (0..9).for_each(|_| _ = learned.sum(START + second * SECOND, 1));
            for tenth in 0..10 {
                let wants = learned.wants(START + second * SECOND + tenth * SECOND / 10, 0);
                assert_eq!(wants.as_f64(), 9.0, "{second}.{tenth}");
            }
        }
    }

    #[test]
    fn the_most_in_use_or_waiting_is_wanted_of_a_gauge() {
        let mut learned = DemandEstimate::new(Kind::Peak, SECOND);
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
