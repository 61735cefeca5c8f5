#[cfg(feature = "file")]
use std::io;
#[cfg(feature = "file")]
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

#[cfg(feature = "file")]
use super::file::Keeper;
use super::log_budget::LogBudget;
use super::moment::{MonotonicClock, StoreClock};
use super::shared_rows::{MOST, SharedRows};
use super::table::Table;
use super::{Inner, Memory};
use crate::clock::Clock;
use crate::key::hash::KeyHash;

/// The default capacity in keys: 5 MB, allocated at first use.
const KEYS: usize = 1 << 17;

/// The default number of log entries for each key of the capacity.
const ENTRIES: usize = 16;

/// Sets up a [`Memory`].
///
/// ```
/// use sluicegate::{ManualClock, Memory};
///
/// let clock = ManualClock::new();
/// let store = Memory::builder().capacity(10_000).clock(&clock).build();
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryBuilder {
    /// `None`: the default capacity, allocated at first use.
    capacity: Option<usize>,
    log_entries: Option<usize>,
    pub(super) clock: Option<Clock>,
    #[cfg(feature = "file")]
    keep_in: Option<PathBuf>,
}

impl MemoryBuilder {
    /// Reserves memory for `keys` keys, each on one limit. The table for a limit is allocated when a layer or limiter
    /// with that limit is made, which takes 13 ms for a million keys. Without this there is room for 131,072 keys,
    /// allocated at first use.
    ///
    /// # Panics
    ///
    /// If `keys` is zero, or 2^32 or more, which would take 160 GB.
    #[must_use]
    #[track_caller]
    pub fn capacity(self, keys: usize) -> Self {
        assert!(keys > 0, "a store with room for 0 keys counts nothing");
        let fits = u32::try_from(keys).is_ok();
        assert!(
            fits,
            "a store with room for {keys} keys does not fit any machine: 2^32 are too many"
        );
        Self { capacity: Some(keys), ..self }
    }

    /// The largest number of entries, of 16 bytes each, for all sliding logs together, beyond the 8 that each log has
    /// of its own. The default is 16 for each key of the capacity.
    ///
    /// The logs of one limit together get at most half of what the logs of other limits leave, so that they cannot
    /// take all of it. A log that gets no more room merges its stamps and goes on counting. It is never more generous
    /// than an exact log, but a place may become free later.
    #[must_use]
    pub fn log_entries(self, entries: usize) -> Self {
        Self { log_entries: Some(entries), ..self }
    }

    /// The clock. The default is the machine's clock.
    #[must_use]
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        Self { clock: Some(clock.into()), ..self }
    }

    /// Keeps the counts in a file, so that they survive a restart. Reads the file when the store is built, and writes
    /// about once a second, in a thread of its own, what has changed.
    ///
    /// - **After a clean end nothing is forgotten.** The store writes the rest when its last clone is dropped. A store in
    ///   a `static` is never dropped: call [`flush`](Memory::flush) at the end of `main`.
    /// - **After a kill or a loss of power, at most the last interval is forgotten:** what was admitted since the last
    ///   write counts as not spent, and what was given back since then counts as spent. The interval is one second,
    ///   and the time that the write takes. If a table is so large that reading it takes more than 20 ms, the interval is
    ///   50 times as long as that, at most ten seconds.
    /// - **The time of being down counts,** by the wall clock. If that clock is set back meanwhile, no time has passed.
    /// - **Held places are free after a restart,** those of [`Limit::concurrent`](crate::Limit::concurrent): the
    ///   requests that held them are gone. All else is kept: bans, also [by hand](crate::store::Blocks), logs, and what is
    ///   carried from one tier to another. Of a key that held places, refusals that count towards a ban are kept for a day.
    /// - **No decision waits for the disk.** If the file cannot be written, that is logged, and tried again; until then
    ///   the file stays as it was.
    /// - **A file that cannot be read is moved aside,** to the same name with `.bad`: a damaged one, one of a newer version,
    ///   or one that is something else. That is logged, and the store begins empty. If only the last write is
    ///   incomplete, as after a loss of power, all before it is read.
    /// - **One store at a time has the file.** It is locked with `FILE.lock` beside it, also where it is named by a link.
    /// - **A file that is removed or changed while the store runs** is written anew, with all counts.
    ///
    /// Only the user of the process can read the file on Unix. It has no keys, but the secret under which they are
    /// hashed. The folder has to exist, and needs room for two to three times what all rows take, about 20 bytes for
    /// each key with the usual token bucket. The file is replaced by renaming, so a container has to mount its folder and not
    /// the file.
    ///
    /// The number of keys may change from one start to the next. If there is no longer room for all, the rest is
    /// forgotten, and that is logged.
    ///
    /// ```
    /// use sluicegate::{Limit, Limiter, Memory};
    ///
    /// # let folder = std::env::temp_dir().join(format!("sluicegate-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let file = folder.join("counts");
    /// let limiter = |store| Limiter::new(Limit::per_hour(1).named("sign-up")).store(store);
    ///
    /// let store = Memory::builder().keep_in(&file).try_build()?;
    /// assert!(limiter(store).take("alice").now()?.is_admitted());
    /// // The store was dropped, and the next one goes on where it was.
    /// let store = Memory::builder().keep_in(&file).try_build()?;
    /// assert!(!limiter(store).take("alice").now()?.is_admitted());
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "file")]
    #[cfg_attr(docsrs, doc(cfg(feature = "file")))]
    #[must_use]
    pub fn keep_in(self, file: impl Into<PathBuf>) -> Self {
        Self { keep_in: Some(file.into()), ..self }
    }

    /// Builds the store.
    ///
    /// # Panics
    ///
    /// If it has to be kept in a file, and that is not possible: see `try_build`.
    pub fn build(self) -> Memory {
        #[cfg(feature = "file")]
        {
            self.try_build().unwrap_or_else(|error| panic!("{error}"))
        }
        #[cfg(not(feature = "file"))]
        {
            Memory(Arc::new(self.empty()))
        }
    }

    /// Builds the store, which may be [kept in a file](Self::keep_in).
    ///
    /// # Errors
    ///
    /// If another process or another store has the file open, or if it cannot be read, locked or written. A file with the
    /// wrong content is no error: it is moved aside.
    #[cfg(feature = "file")]
    #[cfg_attr(docsrs, doc(cfg(feature = "file")))]
    pub fn try_build(self) -> io::Result<Memory> {
        if let Some(file) = &self.keep_in {
            let (inner, keeper) = Keeper::open(&self, file)?;
            return Ok(Memory(inner, Some(Arc::new(keeper))));
        }
        Ok(Memory(Arc::new(self.empty()), None))
    }

    /// A store with the rows of a file, or of a page of one with the right checksums. It is for the fuzzer, and not kept.
    #[cfg(feature = "file")]
    #[doc(hidden)]
    pub fn read_only(self, bytes: &[u8], is_page: bool) -> Option<Memory> {
        Some(Memory(Arc::new(super::file::read_only(&self, bytes, is_page)?), None))
    }

    /// An empty store with a secret of its own.
    pub(super) fn empty(&self) -> Inner {
        self.inner(self.clock.clone().unwrap_or_default(), 0, KeyHash::new())
    }

    /// An empty store whose time is `ahead` of its clock.
    pub(super) fn inner(&self, clock: Clock, ahead: u64, hash: KeyHash) -> Inner {
        let capacity = self.capacity.unwrap_or(KEYS);
        let clock = StoreClock { clock, ahead };
        let base = clock.now();
        Inner {
            base,
            monotonic: MonotonicClock::default(),
            is_eager: self.capacity.is_some(),
            one_word: Table::new(capacity, 0),
            two_words: Table::new(capacity, base),
            full_state: Table::new(capacity, base),
            log_budget: LogBudget::new(
                self.log_entries.unwrap_or(capacity.saturating_mul(ENTRIES)),
            ),
            turned_away: AtomicU64::new(0),
            shared_rows: SharedRows::new(MOST, base),
            hash,
            capacity,
            clock,
        }
    }
}
