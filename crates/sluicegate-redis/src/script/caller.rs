/// What a script needs to know about the process that calls it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// In tests, the clock to use instead of the server's.
    pub(crate) now: Option<u64>,
    /// The number of this process among all holders of places.
    pub(crate) holder: u64,
    /// How long its places last without being renewed, in microseconds.
    pub(crate) lease: u64,
    /// Grows with each request for places.
    pub(crate) turn: u64,
}

/// A single process, in its first turn.
#[cfg(test)]
impl From<Option<u64>> for Caller {
    fn from(now: Option<u64>) -> Self {
        Self { now, holder: 1, lease: 3_600_000_000, turn: 1 }
    }
}
