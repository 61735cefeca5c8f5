//! Whether the limits of one decision belong to one key.

/// Whether all attempts of one decision belong to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Whoever waits for one limit keeps nobody from another who would not wait for it too.
    One,
    /// One limit may be shared by many who do not wait for another: a place that is booked far ahead
    /// must not shut it for them, and is refused instead.
    Several,
}
