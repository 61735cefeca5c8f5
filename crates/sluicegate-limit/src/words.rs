//! The numbers that every algorithm keeps and reads.

/// Two words: all that a bucket or a window remembers. Each algorithm says what they mean.
pub type Words = [u64; 2];

/// The numbers of an algorithm that give its words their meaning, and say how much they hold. They tell the
/// accounts of a [carried](super::Limit::carried) row from each other.
pub(crate) type Parameters = [u64; 4];

/// For a row without accounts: nothing was written yet, or the words mean the same whatever the numbers are.
pub(crate) const NO_PARAMETERS: Parameters = [0; 4];

/// How much of `length` is left that began at `since`. A clock that stepped back cannot make it longer than it was.
pub(crate) fn time_left([since, length]: Words, now: u64) -> u64 {
    length.saturating_sub(now.saturating_sub(since))
}
