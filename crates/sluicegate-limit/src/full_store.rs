//! What a limit answers when a store has no room for a key.

use super::definition::{AlgorithmSpec, Limit};
use super::state::State;
use super::when_full::WhenFull;

/// Limits that recover in this many microseconds, however much was spent, admit what there is no room for.
///
/// To fill the default table with rows that last ten seconds, 13,000 new keys a second have to spend all that
/// the limit gives them. A client that can send that does harm without passing a limit. Of rows that last
/// an hour, 40 new keys a second fill it.
const SOON: u64 = 10_000_000;

impl Limit {
    /// Says what happens to a new key when the store has no room for it.
    ///
    /// Unless it is said, that depends on what the limit is for. Logs, bans, limits that
    /// [count refused attempts](Self::count_refused), concurrency, and limits that are settled by the response
    /// (`count_if`) count new keys [together](WhenFull::CountTogether). So does every other limit that takes
    /// more than ten seconds to recover when all of it is spent. The rest, such as `10/second`, recovers so
    /// fast that a flood can hardly fill a table with it, and [admits](WhenFull::Admit) new keys.
    #[must_use]
    pub const fn when_full(mut self, answer: WhenFull) -> Self {
        self.when_full = Some(answer);
        self
    }

    /// What happens to a new key when the store has no room for it: what [`when_full`](Self::when_full) says,
    /// else what the limit's kind and numbers suggest.
    ///
    /// A [shadow](Self::shadow) always [admits](WhenFull::Admit). A rule that settles the limit by the response counts [together](WhenFull::CountTogether) where nothing
    /// was said.
    pub fn answer_when_full(&self) -> WhenFull {
        match self.when_full {
            // On trial it refuses nobody, and is not counted where there is no room.
            _ if self.shadow => WhenFull::Admit,
            Some(answer) => answer,
            None if self.recovers_soon() => WhenFull::Admit,
            None => WhenFull::CountTogether,
        }
    }

    /// Whether [`when_full`](Self::when_full) was said.
    pub const fn says_when_full(&self) -> bool {
        self.when_full.is_some()
    }

    fn recovers_soon(&self) -> bool {
        if self.ban > 0
            || self.count_refused
            || matches!(self.spec, AlgorithmSpec::SlidingLog { .. })
        {
            return false;
        }
        let mut spent = State::default();
        self.algorithm.spend(&mut spent, 0, self.capacity(), 0);
        let recovery = self.algorithm.fresh_in(&spent, 0);
        recovery.is_some_and(|recovery| recovery.max(self.gap) <= SOON)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn limits_that_recover_in_seconds_admit_and_all_others_count_together() {
        let admit = [
            Limit::per_second(10),
            Limit::per_second(10).burst(100),
            Limit::per(5, 10 * SECOND),
            Limit::per_second(10).refill(2, SECOND),
            Limit::fixed_window(5, 10 * SECOND),
            Limit::sliding_window(5, 5 * SECOND),
            Limit::leaky_bucket(10, SECOND).queue(20),
            Limit::per_second(10).min_gap(SECOND / 10),
        ];
        for limit in admit {
            assert_eq!(limit.answer_when_full(), WhenFull::Admit, "{limit}");
        }
        let together = [
            Limit::per_minute(5),
            Limit::per_second(10).burst(101),
            Limit::fixed_window(5, 11 * SECOND),
            Limit::sliding_window(5, 6 * SECOND),
            Limit::leaky_bucket(1, SECOND).queue(20),
            Limit::per_second(10).min_gap(11 * SECOND),
            Limit::sliding_log(5, SECOND),
            Limit::per_second(10).ban(SECOND),
            Limit::per_second(10).ban(SECOND).ban_after(3, SECOND),
            Limit::sliding_window(5, SECOND).count_refused(),
            Limit::concurrent(5),
        ];
        for limit in together {
            assert_eq!(limit.answer_when_full(), WhenFull::CountTogether, "{limit}");
        }
    }

    #[test]
    fn what_is_said_holds_and_changes_no_row() {
        for answer in [WhenFull::Admit, WhenFull::Refuse, WhenFull::CountTogether] {
            let limit = Limit::per_hour(5).when_full(answer);
            assert_eq!(limit.answer_when_full(), answer);
            assert_eq!(limit.id(), Limit::per_hour(5).id());
            assert_ne!(limit, Limit::per_hour(5));
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        let error = "5/hour when-full never".parse::<Limit>().unwrap_err().to_string();
        assert!(error.contains("admit, refuse or together"), "{error}");
    }
}
