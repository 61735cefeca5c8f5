//! The lines of one log, in order of the time that their requests came.
//!
//! A server writes a line when an answer is over, so lines of requests that came earlier follow later. Lines wait until
//! the log is a window ahead of them.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::Summary;
use super::field::{Draft, Unread, cut};
use super::format::Format;
use super::record::{Batch, Record};
use super::source::{Piece, Source};
use super::time::TimeReader;

/// How far lines may be out of order, in nanoseconds: a minute, which is as long as most servers let an answer take.
pub(super) const WINDOW: i64 = 60_000_000_000;

/// Most lines that wait. With a log of 20,000 lines a second, the whole program then takes 216 MB. In a log of more than 4,000
/// lines a second, the window becomes shorter.
const MAX_WAITING: usize = 1 << 18;

/// As many lines at most say whether a clock has jumped.
const WITNESSES: usize = 16;

/// As many lines at least say that it was set back.
const FEWEST: usize = 8;

/// How much later a line may be than the next one, in nanoseconds, where the clock was set back.
const DISORDER: i64 = 5_000_000_000;

pub(super) struct OrderedLog {
    /// For errors.
    path: PathBuf,
    source: Source,
    format: Format,
    times: TimeReader,
    batches: VecDeque<Batch>,
    /// How many batches are over.
    done_batches: u32,
    waiting: Vec<Waiting>,
    /// The place of the next line.
    head: usize,
    /// Lines before this place are in their final order.
    ready: usize,
    /// The latest time that the log was written at, if it has begun.
    latest: Option<i64>,
    /// What is added to times since the clock was set back.
    shift: i64,
    is_first: bool,
    is_over: bool,
    /// The batch of the record that was lent last.
    lent: Option<u32>,
}

/// A line that waits for its turn, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    start: i64,
    batch: u32,
    index: u32,
}

impl OrderedLog {
    pub(super) fn new(path: PathBuf, source: Source, format: Format, times: TimeReader) -> Self {
        Self {
            path,
            source,
            format,
            times,
            batches: VecDeque::new(),
            done_batches: 0,
            waiting: Vec::new(),
            head: 0,
            ready: 0,
            latest: None,
            shift: 0,
            is_first: true,
            is_over: false,
            lent: None,
        }
    }

    /// When the next request came. `None`: the log is over.
    #[inline]
    pub(super) fn next_start(&mut self, summary: &mut Summary) -> Result<Option<i64>, String> {
        while self.head == self.ready {
            if self.is_over {
                return Ok(None);
            }
            self.fill(summary)?;
        }
        Ok(Some(self.waiting[self.head].start))
    }

    /// The next record, with the time `start`.
    #[inline]
    pub(super) fn next(&mut self, start: i64) -> Option<Record<'_>> {
        if self.head == self.ready {
            return None;
        }
        if let Some(lent) = self.lent.take() {
            self.end(lent);
        }
        let Waiting { batch, index, .. } = self.waiting[self.head];
        self.head += 1;
        self.lent = Some(batch);
        let batch = &self.batches[(batch - self.done_batches) as usize];
        Some(batch.record(index as usize, start, self.times.resolution(), &self.format.headers.0))
    }

    /// A line of this batch was used.
    fn end(&mut self, batch: u32) {
        let batch = &mut self.batches[(batch - self.done_batches) as usize];
        batch.left -= 1;
        if batch.left > 0 {
            return;
        }
        // Lines before and behind it may still wait.
        *batch = Batch::default();
        while self.batches.front().is_some_and(|batch| batch.left == 0) {
            self.batches.pop_front();
            self.done_batches += 1;
        }
    }

    /// Reads on until lines are ready.
    fn fill(&mut self, summary: &mut Summary) -> Result<(), String> {
        if let Some(lent) = self.lent.take() {
            self.end(lent);
        }
        self.waiting.drain(..self.head);
        self.head = 0;
        self.ready = 0;
        // Sorting goes through all that wait, so it pays for as many new lines.
        let enough = self.waiting.len() * 3 / 2 + 1;
        while !self.is_over && self.waiting.len() < enough {
            let piece = self.source.piece();
            match piece.map_err(|error| format!("{}: {error}", self.path.display()))? {
                None => self.is_over = true,
                Some(piece) => self.add(piece, summary),
            }
        }
        self.waiting.sort();
        self.ready = if self.is_over {
            self.waiting.len()
        } else {
            let until = self.latest.map_or(i64::MIN, |latest| latest.saturating_sub(WINDOW));
            let ready = self.waiting.partition_point(|line| line.start <= until);
            ready.max(self.waiting.len().saturating_sub(MAX_WAITING))
        };
        Ok(())
    }

    /// Reads lines.
    pub(super) fn add(&mut self, Piece { text, too_long }: Piece, summary: &mut Summary) {
        summary.lines += too_long;
        summary.unread += too_long;
        let mut batch = Batch { text, ..Batch::default() };
        let names = self.format.headers.0.len();
        let mut rest = &*batch.text;
        while !rest.is_empty() {
            let (line, behind) = cut(rest, b'\n').unwrap_or((rest, ""));
            rest = behind;
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if std::mem::take(&mut self.is_first) && self.format.has_titles() {
                continue;
            }
            summary.lines += 1;
            let from = batch.headers.len();
            batch.headers.resize(from + names, None);
            let headers = &mut batch.headers[from..];
            let mut draft = Draft::new(&batch.text, &mut batch.copies, &mut self.times, headers);
            let read = self.format.read(line, &mut draft).ok_or(Unread::Line);
            match read.and_then(|()| draft.finish(self.format.is_end)) {
                Ok(entry) => batch.entries.push(entry),
                Err(unread) => {
                    batch.headers.truncate(from);
                    summary.unread(unread, line);
                }
            }
        }
        if batch.entries.is_empty() {
            return;
        }
        self.correct(&mut batch, summary);
        batch.left = batch.entries.len();
        let number = self.done_batches + self.batches.len() as u32;
        self.waiting.extend((0..).zip(&batch.entries).map(|(index, entry)| Waiting {
            start: entry.start,
            batch: number,
            index,
        }));
        self.batches.push_back(batch);
    }

    /// Corrects times of a clock that jumped. A single line with a time far from its neighbours takes theirs. If the clock
    /// was set back, or an older log follows, all that follows is moved, so that time goes on.
    fn correct(&mut self, batch: &mut Batch, summary: &mut Summary) {
        for index in 0..batch.entries.len() {
            let logged = batch.entries[index].logged.saturating_add(self.shift);
            let behind = &batch.entries[index + 1..];
            let behind = &behind[..behind.len().min(WITNESSES)];
            let shift = self.shift;
            let mut witnesses = behind.iter().map(|entry| entry.logged.saturating_add(shift));
            let latest = self.latest.unwrap_or_else(|| witnesses.clone().fold(logged, i64::min));
            let is_ahead = logged > latest.saturating_add(WINDOW);
            let is_behind = logged < latest.saturating_sub(WINDOW);
            let mut moved = self.shift;
            if is_ahead
                && !behind.is_empty()
                && witnesses.clone().all(|time| time < logged.saturating_sub(WINDOW))
            {
                summary.odd_times += 1;
                moved = latest.saturating_sub(batch.entries[index].logged);
                self.latest = Some(latest);
            } else if is_behind && behind.len() >= FEWEST && {
                // Lines of requests that took long, in a log of when requests came, are in no order.
                let mut before = logged;
                witnesses.all(|time| {
                    let is_next = time >= before.saturating_sub(DISORDER)
                        && time < latest.saturating_sub(WINDOW);
                    before = time;
                    is_next
                })
            } {
                summary.set_back += 1;
                self.shift = self.shift.saturating_add(latest.saturating_sub(logged));
                moved = self.shift;
                self.latest = Some(latest);
            } else {
                self.latest = Some(latest.max(logged));
            }
            let entry = &mut batch.entries[index];
            entry.start = entry.start.saturating_add(moved);
        }
    }
}
