//! Whether the limits of one decision belong to one key.

/// Whether all attempts of one decision belong to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// A request that waits for one limit only delays requests that would wait for that limit too.
    One,
    /// One limit may be shared by many keys that do not wait for another limit. A place booked far ahead must not
    /// shut them out, and is refused instead.
    Several,
}
