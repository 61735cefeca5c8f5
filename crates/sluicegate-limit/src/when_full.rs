//! What happens to a key that a full store has no room for.

use core::fmt;

use crate::limit::{AlgorithmSpec, Limit};
use crate::state::State;

/// What a bounded store does with a key that is new to it when every row that could hold it is in use.
///
/// A store never forgets a key that is being limited, so a flood of new keys can fill it. This setting decides about
/// the next new key. Keys that have a row are not affected.
///
/// ```
/// # mod sluicegate { pub use sluicegate_limit::Limit; pub mod limit { pub use sluicegate_limit::*; } }
/// use sluicegate::Limit;
/// use sluicegate::limit::WhenFull;
///
/// let login = Limit::per_hour(5);
/// assert_eq!(login.answer_when_full(), WhenFull::CountTogether);
///
/// let search = Limit::per_second(10);
/// assert_eq!(search.answer_when_full(), WhenFull::Admit);
/// assert_eq!(
///     search.when_full(WhenFull::Refuse).to_string(),
///     "10/second when-full refuse"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// The limit is not counted for the request, and has no part in the decision; the request's other
    /// limits are counted. Where none of them can be counted, the store answers
    /// `StoreError::full`, and a layer does what it does when its store
    /// fails: it admits the request, unless told otherwise.
    Admit,
    /// The request is refused: the store answers an error that
    /// must refuse (`StoreError::must_refuse`) and charges nothing, and a layer answers 503, whatever
    /// it does when its store fails. A request that another limit refuses is refused by that limit instead.
    Refuse,
    /// New keys are counted together: all that there is no room for share 256 rows of the limit, chosen by a
    /// hash under the store's secret seed. Each of these rows admits what the limit admits to one key, so a
    /// stranger may be refused on account of other strangers, and nobody is admitted more than the limit.
    ///
    /// When there is room again, a key gets its own row, which begins with what the shared row has counted. A key of
    /// a [concurrency](crate::Limit::concurrent) limit stays with the shared row until nothing is held there.
    CountTogether,
}

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
        // The longest recovery there is: from everything spent at once.
        let mut spent = State::default();
        self.algorithm.spend(&mut spent, 0, self.capacity(), 0);
        let recovery = self.algorithm.fresh_in(&spent, 0);
        recovery.is_some_and(|recovery| recovery.max(self.gap) <= SOON)
    }
}

impl WhenFull {
    /// Its word in the text form of a limit.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Refuse => "refuse",
            Self::CountTogether => "together",
        }
    }

    /// The answer with this word in a text.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        [Self::Admit, Self::Refuse, Self::CountTogether].into_iter().find(|it| it.word() == word)
    }
}

/// As the text form of a limit says it: `admit`, `refuse` or `together`.
impl fmt::Display for WhenFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
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
