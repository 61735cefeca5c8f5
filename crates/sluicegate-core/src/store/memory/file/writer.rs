//! Writing to a disk what has changed.

use std::io;
use std::time::{Duration, Instant};

use super::super::Inner;
use super::disk::Disk;
use super::format::{Pages, Times, write_header};
use super::scan::{Extent, Scan};
use crate::key::hash::SECRET_BYTES;

/// How much may be appended to a file before a new one is begun, even if that is more than all rows take.
const LEAST_APPENDED: u64 = 4 << 20;

/// How far the wall clock and the time of the store may drift apart before the file says so, in microseconds. They are
/// not read at one moment.
pub(super) const SAME: u64 = 10_000;

/// Writes a store to a disk, again and again.
#[derive(Debug)]
pub(super) struct Writer<D> {
    disk: D,
    secret: [u8; SECRET_BYTES],
    scan: Scan,
    /// Whether the file is whole, so that it can be appended to.
    is_whole: bool,
    /// The number of the next group.
    group: u64,
    /// The bytes of the first group, and of those behind it.
    all: u64,
    appended: u64,
    /// When something was written last.
    times: Times,
    /// How the time of the store went with its clock, then.
    steps: u64,
}

impl<D: Disk> Writer<D> {
    pub(super) fn new(disk: D, secret: [u8; SECRET_BYTES]) -> Self {
        Self {
            disk,
            secret,
            scan: Scan::default(),
            is_whole: false,
            group: 0,
            all: 0,
            appended: 0,
            times: Times::default(),
            steps: 0,
        }
    }

    /// Makes the next write begin a new file.
    #[cfg(test)]
    pub(super) fn begin_anew(&mut self) {
        self.is_whole = false;
    }

    /// Writes what has changed since the last call, or everything, and waits for the disk. Returns how long the tables
    /// were read.
    ///
    /// # Errors
    ///
    /// Those of the disk. The next call writes everything to a new file; until then the old one stays.
    pub(super) fn write(&mut self, inner: &Inner) -> io::Result<Duration> {
        let moment = inner.moment();
        // A manual clock that was set back: what was written of rows of one word is of the time before.
        let steps = moment.since.wrapping_sub(moment.now);
        let is_set_back = std::mem::replace(&mut self.steps, steps) != steps;
        let is_long = self.appended > self.all.max(LEAST_APPENDED);
        // Only what was written to the end is whole.
        let is_whole = std::mem::take(&mut self.is_whole);
        let is_in_place = self.disk.is_in_place()?;
        let is_new = !is_whole || !is_in_place || is_long || is_set_back;
        let written = if is_new { self.write_all(inner) } else { self.write_changed(inner) };
        self.is_whole = written.is_ok();
        if !self.is_whole {
            self.disk.abandon();
        }
        written
    }

    fn write_all(&mut self, inner: &Inner) -> io::Result<Duration> {
        self.disk.begin()?;
        self.disk.append(&write_header(&self.secret))?;
        self.group = 0;
        let (took, all) = self.write_group(inner, Extent::All)?;
        self.disk.sync()?;
        self.disk.publish()?;
        (self.all, self.appended) = (all, 0);
        Ok(took)
    }

    fn write_changed(&mut self, inner: &Inner) -> io::Result<Duration> {
        let (took, appended) = self.write_group(inner, Extent::Changed)?;
        if appended > 0 {
            self.disk.sync()?;
            self.appended += appended;
        }
        Ok(took)
    }

    fn write_group(&mut self, inner: &Inner, extent: Extent) -> io::Result<(Duration, u64)> {
        let started = Instant::now();
        let mut written = 0;
        let mut append = |bytes: &[u8]| {
            written += bytes.len() as u64;
            self.disk.append(bytes)
        };
        let mut pages = Pages::new(self.group, &mut append);
        let times = inner.times();
        let is_written = self.scan.write(inner, extent, &mut pages)?;
        // If the wall clock was set, the time of being down would be wrong by as much.
        let drifted = |to: Times| to.store.wrapping_sub(to.wall) as i64;
        if !is_written && drifted(times).abs_diff(drifted(self.times)) > SAME {
            pages.finish(times)?;
        }
        if written > 0 {
            self.group += 1;
            self.times = times;
        }
        Ok((started.elapsed(), written))
    }
}
