use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// What keeps the rows: a database, or anything else that processes share and that can compare and swap.
///
/// A [`Swap`](crate::Swap) does everything else. `examples` of an engine are in the documentation of the crate.
///
/// Each row has a key, a version and bytes that mean nothing to the engine. A row that is not there is a state like any
/// other: it is loaded as `None`, and a swap may expect that. Every write gives a row another version. A version may come
/// again only after the engine has forgotten the row.
///
/// A call that takes longer than the store's deadline is dropped. It may still happen: the store finds out.
pub trait Engine: Send + Sync + 'static {
    /// The largest number of rows that one [`swap`](Self::swap) changes, all or none. If it is 1, the charge of a request
    /// to several rows is made row by row, and given back if a later row refuses.
    fn rows_at_once(&self) -> usize;

    /// Reads the rows with these keys, in their order. It must see every swap that has been answered.
    ///
    /// # Errors
    ///
    /// If the engine cannot be reached, or fails.
    fn load(&self, keys: &[Arc<str>]) -> impl Future<Output = Result<Loaded, EngineError>> + Send;

    /// Writes all rows, if each still has the version that is expected, or else none.
    ///
    /// # Errors
    ///
    /// If the engine cannot be reached, or fails. It may have written the rows all the same: the store finds out.
    fn swap(&self, writes: &[Write]) -> impl Future<Output = Result<Swapped, EngineError>> + Send;
}

/// Why an engine did not answer.
pub type EngineError = Box<dyn Error + Send + Sync>;

/// A row in the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Changes with each write.
    pub version: u64,
    /// What was written.
    pub bytes: Vec<u8>,
}

/// The answer of [`Engine::load`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// A row, or `None`, for each key.
    pub rows: Vec<Option<Stored>>,
    /// The engine's clock, as the time since the Unix epoch. `None` if the engine has no clock of its own: then the
    /// machines' system time counts, and must agree within ten seconds.
    pub now: Option<Duration>,
}

/// A row that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The key: printable ASCII without spaces, of at most 1,024 bytes with the default prefix.
    pub key: Arc<str>,
    /// The version that the row must have; `None` if it must not be there.
    pub expected: Option<u64>,
    /// The version for the row, if the engine does not number versions itself. It is random and does not come again.
    pub version: u64,
    /// What to write.
    pub bytes: Vec<u8>,
    /// After this time the engine may forget the row, unless it is written again.
    pub keep: Duration,
}

/// The answer of [`Engine::swap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swapped {
    /// All rows are written.
    Written {
        /// The version that each has now.
        versions: Vec<u64>,
        /// The engine's clock; see [`Loaded::now`].
        now: Option<Duration>,
    },
    /// Some row has another version than expected, and nothing is written. An engine that can tell says how all rows are
    /// now, which saves a call of [`Engine::load`].
    Changed(Option<Loaded>),
}
