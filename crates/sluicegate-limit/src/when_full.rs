//! What happens to a key that a full store has no room for.

use core::fmt;

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
    /// The request is refused: the store answers an error that must refuse (`StoreError::must_refuse`) and charges
    /// nothing, and a layer that is not on trial answers 503, whatever it does when its store fails. A request that
    /// another limit refuses is refused by that limit instead.
    Refuse,
    /// New keys are counted together: all that there is no room for share 256 rows of the limit, chosen by a
    /// hash under the store's secret seed. Each of these rows admits what the limit admits to one key, so a
    /// stranger may be refused on account of other strangers, and nobody is admitted more than the limit.
    ///
    /// When there is room again, a key gets its own row, which begins with what the shared row has counted. A key of
    /// a [concurrency](crate::Limit::concurrent) limit stays with the shared row until nothing is held there.
    CountTogether,
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
