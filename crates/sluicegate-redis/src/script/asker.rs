/// Who asks, and when: what a script has to know besides the rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    /// The clock in place of the server's, in tests.
    pub(crate) now: Option<u64>,
    /// The number of this process, by which its places are told from those of others.
    pub(crate) holder: u64,
    /// For how long its places are kept without being renewed, in microseconds.
    pub(crate) lease: u64,
    /// Grows with each request for places.
    pub(crate) turn: u64,
}

/// One process alone, in its first turn.
#[cfg(test)]
impl From<Option<u64>> for Asker {
    fn from(now: Option<u64>) -> Self {
        Self { now, holder: 1, lease: 3_600_000_000, turn: 1 }
    }
}
