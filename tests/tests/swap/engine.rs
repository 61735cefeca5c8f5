//! An engine in the memory of this process, which may lie.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_swap::{Engine, EngineError, Loaded, Stored, Swapped, Write};

/// Rows that all clones share.
#[derive(Clone)]
pub(crate) struct MadeUp {
    rows: Arc<Mutex<Rows>>,
    clock: ManualClock,
    rows_at_once: usize,
    lies: Lies,
}

/// How often, in a thousand calls, an engine does this.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lies {
    /// Swaps, and reports a failure.
    pub(crate) failed: u32,
    /// Does nothing, and reports a failure.
    pub(crate) away: u32,
    /// Reports a failure, and swaps a few calls later.
    pub(crate) late: u32,
    /// Swaps, and reports that a row had changed, as a client library does that sends a swap twice.
    pub(crate) twice: u32,
    /// Reads what was there before the last write, which an engine may not do.
    pub(crate) stale: u32,
}

#[derive(Default)]
struct Rows {
    rows: HashMap<Arc<str>, EngineRow>,
    late: Vec<Vec<Write>>,
    is_back: bool,
    random: u64,
}

#[derive(Clone)]
struct EngineRow {
    stored: Stored,
    before: Option<Stored>,
    until: u64,
}

impl MadeUp {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        let (rows, clock) = (Arc::default(), clock.clone());
        Self { rows, clock, rows_at_once: 64, lies: Lies::default() }
    }

    /// Swaps no more rows at once.
    pub(crate) fn rows_at_once(self, rows_at_once: usize) -> Self {
        Self { rows_at_once, ..self }
    }

    pub(crate) fn lies(self, lies: Lies, seed: u64) -> Self {
        self.lock().random = seed;
        Self { lies, ..self }
    }

    pub(crate) fn honest(&self) -> Self {
        Self { lies: Lies::default(), ..self.clone() }
    }

    pub(crate) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// It is there from now on.
    pub(crate) fn come_back(&self) {
        self.lock().is_back = true;
    }

    /// The keys of all rows.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.lock().rows.keys().map(|key| key.to_string()).collect()
    }

    /// The versions of all rows.
    pub(crate) fn versions(&self) -> Vec<u64> {
        self.lock().rows.values().map(|kept| kept.stored.version).collect()
    }

    /// Changes a byte of every row.
    pub(crate) fn damage(&self) {
        self.lock().rows.values_mut().for_each(|kept| kept.stored.bytes[20] ^= 1);
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls take a while, so that those of several processes meet.
    async fn travel(&self) {
        let steps = self.lock().random() % 4;
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
    }
}

impl Rows {
    fn random(&mut self) -> u64 {
        // Numerical Recipes' linear congruential generator.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random >> 33
    }

    fn happens(&mut self, in_a_thousand: u32) -> bool {
        self.random() % 1_000 < u64::from(in_a_thousand)
    }

    fn forget(&mut self, now: u64) {
        self.rows.retain(|_, kept| now < kept.until);
    }

    /// Versions are counted, and begin again when the row was forgotten.
    fn swap(&mut self, writes: &[Write], now: u64) -> Option<Vec<u64>> {
        self.forget(now);
        let version = |write: &Write| self.rows.get(&write.key).map(|kept| kept.stored.version);
        if writes.iter().any(|write| version(write) != write.expected) {
            return None;
        }
        let swap = |write: &Write| {
            let version = write.expected.unwrap_or(0) + 1;
            let stored = Stored { version, bytes: write.bytes.clone() };
            let until = now + write.keep.as_micros() as u64;
            let before = self.rows.get(&write.key).map(|kept| kept.stored.clone());
            self.rows.insert(Arc::clone(&write.key), EngineRow { stored, before, until });
            version
        };
        Some(writes.iter().map(swap).collect())
    }

    fn loaded(&mut self, keys: &[Arc<str>], now: u64, is_stale: bool) -> Loaded {
        self.forget(now);
        let row = |key: &Arc<str>| {
            let kept = self.rows.get(key)?;
            if is_stale { kept.before.clone() } else { Some(kept.stored.clone()) }
        };
        Loaded { rows: keys.iter().map(row).collect(), now: Some(Duration::from_micros(now)) }
    }
}

impl Engine for MadeUp {
    fn rows_at_once(&self) -> usize {
        self.rows_at_once
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        self.travel().await;
        let now = self.clock.now();
        let loaded = {
            let mut rows = self.lock();
            if !rows.is_back && rows.happens(self.lies.away) {
                return Err("the engine is away".into());
            }
            let is_stale = rows.happens(self.lies.stale);
            rows.loaded(keys, now, is_stale)
        };
        self.travel().await;
        Ok(loaded)
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        assert!(writes.len() <= self.rows_at_once, "{} rows", writes.len());
        self.travel().await;
        let now = self.clock.now();
        let swapped = {
            let (mut rows, lies) = (self.lock(), self.lies);
            if rows.happens(200) {
                for late in std::mem::take(&mut rows.late) {
                    rows.swap(&late, now);
                }
            }
            if !rows.is_back && rows.happens(lies.away) {
                return Err("the engine is away".into());
            }
            if rows.happens(lies.late) {
                rows.late.push(writes.to_vec());
                return Err("no answer yet".into());
            }
            let versions = rows.swap(writes, now);
            if rows.happens(lies.failed) {
                return Err("the answer is lost".into());
            }
            let is_twice = rows.happens(lies.twice);
            match versions.filter(|_| !is_twice) {
                Some(versions) => {
                    Swapped::Written { versions, now: Some(Duration::from_micros(now)) }
                }
                None if rows.happens(500) => Swapped::Changed(None),
                None => {
                    let keys: Vec<_> = writes.iter().map(|write| Arc::clone(&write.key)).collect();
                    Swapped::Changed(Some(rows.loaded(&keys, now, false)))
                }
            }
        };
        self.travel().await;
        Ok(swapped)
    }
}
