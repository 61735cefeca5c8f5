//! The engine's clock, learnt from its answers.
//!
//! An engine shows its clock at some moment between question and answer. So each answer bounds how far the engine's clock
//! is ahead of this machine's, by a round trip. The first estimate is the middle, which is wrong by at most half a round
//! trip. It changes only when a later answer shows that it was wrong, so that the time of a process does not jitter.

use std::time::Duration;

/// Clocks run apart by less than one part in this.
const DRIFT: u64 = 5_000;

/// How far an engine's clock is ahead of this machine's, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineTime {
    ahead: i64,
    least: i64,
    most: i64,
    /// When the bounds were right, by this machine's clock.
    at: u64,
}

impl EngineTime {
    /// Learns from a question that was sent and answered at these times of this machine's clock.
    pub(crate) fn learn(
        known: Option<Self>,
        (sent, received): (u64, u64),
        engine: Duration,
    ) -> Self {
        let engine = u64::try_from(engine.as_micros()).unwrap_or(u64::MAX);
        let ahead_of = |machine: u64| (engine as i64).saturating_sub(machine as i64);
        let (least, most) = (ahead_of(received), ahead_of(sent.min(received)));
        let anew = Self { ahead: least + (most - least) / 2, least, most, at: received };
        let Some(known) = known else { return anew };
        let drifted = (received.saturating_sub(known.at) / DRIFT) as i64;
        let least = least.max(known.least.saturating_sub(drifted));
        let most = most.min(known.most.saturating_add(drifted));
        if least > most {
            // The clock was set, or another server answers.
            return anew;
        }
        Self { ahead: known.ahead.clamp(least, most), least, most, at: received }
    }

    /// The engine's time at a time of this machine's clock.
    pub(crate) fn at(&self, machine: u64) -> u64 {
        machine.saturating_add_signed(self.ahead)
    }

    /// The earliest and the latest time that the engine may show.
    pub(crate) fn bounds(&self, machine: u64) -> (u64, u64) {
        let drifted = (machine.saturating_sub(self.at) / DRIFT) as i64;
        let least = machine.saturating_add_signed(self.least.saturating_sub(drifted));
        (least, machine.saturating_add_signed(self.most.saturating_add(drifted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    fn learnt(answers: &[(u64, u64, i64)]) -> EngineTime {
        let learn = |known, &(sent, received, engine): &(u64, u64, i64)| {
            let engine = Duration::from_micros(engine as u64);
            Some(EngineTime::learn(known, (sent, received), engine))
        };
        answers.iter().fold(None, learn).expect("an answer")
    }

    #[test]
    fn the_first_estimate_is_wrong_by_half_a_round_trip_at_most() {
        for on_the_way in [0, 1, 400, 1_000] {
            let time = learnt(&[(5_000, 6_000, HOUR + 5_000 + on_the_way)]);
            let error = time.at(7_000) as i64 - (HOUR + 7_000);
            assert!(error.abs() <= 500, "{error}");
        }
    }

    #[test]
    fn an_estimate_stays_until_it_is_shown_to_be_wrong() {
        let slow = (5_000, 6_000, HOUR + 5_900);
        let quick = (7_000, 7_020, HOUR + 7_010);
        let estimate = learnt(&[slow]).at(0);
        assert_eq!(learnt(&[slow, (6_000, 7_000, HOUR + 6_500)]).at(0), estimate);
        let error = learnt(&[slow, quick]).at(0) as i64 - HOUR;
        assert!(error.abs() <= 11, "{error}");
        assert_eq!(learnt(&[slow, quick, slow]).at(0), learnt(&[slow, quick]).at(0));
    }

    #[test]
    fn a_clock_that_was_set_is_followed() {
        let before = (5_000, 6_000, HOUR + 5_500);
        let after = (8_000, 9_000, 8_500);
        assert_eq!(learnt(&[before, after]).at(10_000), 10_000);
    }

    #[test]
    fn the_bounds_hold_the_time_and_widen() {
        let time = learnt(&[(5_000, 6_000, HOUR + 5_900)]);
        let (least, most) = time.bounds(6_000);
        assert!(least <= HOUR as u64 + 6_000 && HOUR as u64 + 6_000 <= most);
        let later = 6_000 + HOUR as u64;
        let (least, most) = time.bounds(later);
        assert_eq!(most - least, 1_000 + 2 * HOUR as u64 / DRIFT);
    }
}
