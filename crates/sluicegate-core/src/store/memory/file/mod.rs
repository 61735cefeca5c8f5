//! A store that keeps itself in a file: [`MemoryBuilder::keep_in`](super::MemoryBuilder::keep_in).
//!
//! A thread reads the tables once a second, large ones up to ten times less often. It appends what has changed to the file,
//! and waits for the disk. When what was appended is more than all rows, it writes a new file and puts it in the place of
//! the old one. The parts that decide what is written and read are without I/O: [`format`] has the bytes, [`scan`] and
//! [`restore`] the rows. The disk is behind [`Disk`](disk::Disk), so that a test can stop it at any byte.
//!
//! **Time.** Rows say when something was spent by the time of the store, which is that of the wall clock at the start of
//! the process, and does not step. Each group says what both clocks showed. A store that is read from a file goes on from
//! the time of the store in the file, and adds what the wall clock has moved on since. If the wall clock went back, that is
//! nothing. So a machine that learns the time late, or whose clock is set, forgets nothing. Once no row of the file is
//! left at a start, the time of the store is that of the wall clock again.

mod disk;
mod format;
mod read;
mod restore;
mod scan;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use self::disk::{Disk, Folder};
use self::format::Times;
use self::read::{Saved, Unreadable};
use self::restore::Forgotten;
use self::writer::{SAME, Writer};
use super::{Inner, MemoryBuilder};
use crate::key::hash::KeyHash;
use crate::limit::bounded;
use crate::standard_error::{self, is_recorded};

/// How long the thread waits between two times that it writes.
const INTERVAL: Duration = Duration::from_secs(1);

/// The thread waits this many times as long as it took to read the tables, so that it takes at most 2 % of one processor.
const PAUSE: u32 = 50;

/// The longest wait between two times that it writes.
const MOST_INTERVAL: Duration = Duration::from_secs(10);

/// Keeps a store in its file until the last clone of the store is dropped.
pub(super) struct Keeper {
    inner: Arc<Inner>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    path: PathBuf,
    writer: Mutex<Writer<Folder>>,
    /// Whether the thread has to end.
    end: Mutex<bool>,
    ended: Condvar,
    /// Files that could not be read, and were moved aside.
    #[cfg(feature = "metrics")]
    refused: u64,
    failed_writes: AtomicU64,
    /// Whether the last write failed, so that an outage is logged once.
    is_failing: Mutex<bool>,
}

/// How a store was read from its file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Opened {
    refused: Option<Unreadable>,
    is_torn: bool,
    forgotten: Forgotten,
}

impl Keeper {
    /// Reads the file, makes the store, and begins to keep it.
    pub(super) fn open(builder: &MemoryBuilder, path: &Path) -> io::Result<(Arc<Inner>, Self)> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("the file of counts {}: {error}", path.display()))
        };
        let disk = Folder::open(path.to_owned()).map_err(named)?;
        let (inner, writer, opened) = open(builder, disk).map_err(named)?;
        opened.report(path);
        let inner = Arc::new(inner);
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            writer: Mutex::new(writer),
            end: Mutex::new(false),
            ended: Condvar::new(),
            #[cfg(feature = "metrics")]
            refused: u64::from(opened.refused.is_some()),
            failed_writes: AtomicU64::new(0),
            is_failing: Mutex::new(false),
        });
        let (of_thread, store) = (Arc::clone(&shared), Arc::clone(&inner));
        let thread = std::thread::Builder::new().name("sluicegate-file".into());
        let thread = thread.spawn(move || of_thread.run(&store)).map_err(named)?;
        Ok((Arc::clone(&inner), Self { inner, shared, thread: Some(thread) }))
    }

    /// Writes now what has changed.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.shared.write(&self.inner).map(drop)
    }

    /// How many files could not be read, and how many writes have failed.
    #[cfg(feature = "metrics")]
    pub(super) fn failures(&self) -> [u64; 2] {
        [self.shared.refused, self.shared.failed_writes.load(Ordering::Relaxed)]
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *lock(&self.shared.end) = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic, and if it did, what follows would still be right.
            let _ = thread.join();
        }
        // Nobody else has the store now, so this is everything. A failure is logged.
        let _ = self.flush();
    }
}

impl Shared {
    fn run(&self, inner: &Inner) {
        let mut pause = INTERVAL;
        loop {
            let end = lock(&self.end);
            let wait = self.ended.wait_timeout_while(end, pause, |end| !*end);
            if *wait.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
            pause = pause_after(&self.write(inner));
        }
    }

    fn write(&self, inner: &Inner) -> io::Result<Duration> {
        let written = lock(&self.writer).write(inner);
        let was_failing = std::mem::replace(&mut *lock(&self.is_failing), written.is_err());
        match &written {
            Err(error) => {
                self.failed_writes.fetch_add(1, Ordering::Relaxed);
                if !was_failing {
                    let path = self.path.display();
                    warn(&format!(
                        "counts cannot be written to {path}, and would not survive: {error}"
                    ));
                }
            }
            Ok(_) if was_failing => {
                let path = self.path.display();
                warn(&format!("counts are written to {path} again"));
            }
            Ok(_) => {}
        }
        written
    }
}

/// After a failure everything is written anew, which a disk that is full or slow does not need each second.
fn pause_after(written: &io::Result<Duration>) -> Duration {
    written.as_ref().map_or(MOST_INTERVAL, |took| (*took * PAUSE).clamp(INTERVAL, MOST_INTERVAL))
}

/// Reads a store from a disk, and writes it to a new file there.
fn open<D: Disk>(builder: &MemoryBuilder, mut disk: D) -> io::Result<(Inner, Writer<D>, Opened)> {
    let bytes = disk.read()?;
    let mut opened = Opened::default();
    let saved = match bytes.as_deref().map(Saved::read) {
        None => None,
        Some(Ok(saved)) => Some(saved),
        Some(Err(unreadable)) => {
            disk.set_aside()?;
            opened.refused = Some(unreadable);
            None
        }
    };
    let inner = match saved {
        None => builder.empty(),
        Some(saved) => {
            opened.is_torn = saved.is_torn;
            let inner;
            (inner, opened.forgotten) = restored(builder, &saved);
            inner
        }
    };
    drop(bytes);
    let mut writer = Writer::new(disk, inner.hash.to_bytes());
    // Also so that a folder that cannot be written to is found out now.
    writer.write(&inner)?;
    Ok((inner, writer, opened))
}

/// A store with the rows of a file, or of a page whose checksums are right, whatever they say. `None` if it cannot be read.
pub(super) fn read_only(builder: &MemoryBuilder, bytes: &[u8], is_page: bool) -> Option<Inner> {
    let page;
    let bytes = if is_page {
        page = format::file_of_page(bytes);
        &page
    } else {
        bytes
    };
    let (inner, _) = restored(builder, &Saved::read(bytes).ok()?);
    Some(inner)
}

/// A store with the rows of a file.
fn restored(builder: &MemoryBuilder, saved: &Saved<'_>) -> (Inner, Forgotten) {
    let clock = builder.clock.clone().unwrap_or_default();
    let resumed = resumed(saved.times, clock.wall());
    let ahead = ahead(saved, clock.now(), resumed);
    let inner = builder.inner(clock, ahead, KeyHash::from_bytes(saved.secret));
    let forgotten = inner.restore(saved, resumed);
    (inner, forgotten)
}

/// How far the time of the store, which goes on at `resumed`, is ahead of its clock. It wraps around where it is behind.
fn ahead(saved: &Saved<'_>, now: u64, resumed: u64) -> u64 {
    let is_same = now.abs_diff(resumed) <= SAME;
    if is_same || !saved.rows().any(|(.., row)| row.until > resumed) {
        return 0;
    }
    resumed.wrapping_sub(now)
}

/// The time of the store at `wall`, if it showed `saved` before.
fn resumed(saved: Times, wall: u64) -> u64 {
    bounded(saved.store + wall.saturating_sub(saved.wall))
}

impl Opened {
    fn report(&self, path: &Path) {
        let path = path.display();
        if let Some(unreadable) = self.refused {
            warn(&format!(
                "the counts in {path} cannot be read: {unreadable}. The file is now {path}.bad, and counts begin at nothing"
            ));
        }
        if self.is_torn {
            warn(&format!(
                "the last write to {path} was not complete, and what it had to say is lost"
            ));
        }
        if self.forgotten != Forgotten::default() {
            let Forgotten(rows) = self.forgotten;
            warn(&format!(
                "there is no room for {rows} of the counts in {path}: the store is too small"
            ));
        }
    }
}

fn warn(message: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!("{message}");
    standard_error::write_unless(is_recorded!(WARN), || message.to_owned());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("path", &self.shared.path).finish_non_exhaustive()
    }
}
