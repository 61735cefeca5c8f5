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

/// Most memory of lines that wait, in bytes. Lines of some hundred bytes meet the bound above first. On the log of an attack, they
/// have many kilobytes.
const MOST_BYTES: usize = 256 << 20;

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
    /// The memory of the batches, and the most of it.
    bytes: usize,
    most_bytes: usize,
    /// Lines whose time is still to be corrected, by those that follow.
    unplaced: Vec<Unplaced>,
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

/// A line that was read, and when it was logged.
#[derive(Debug, Clone, Copy)]
struct Unplaced {
    logged: i64,
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
            bytes: 0,
            most_bytes: MOST_BYTES,
            unplaced: Vec::new(),
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
        self.bytes -= batch.size();
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
        while !self.is_over
            && self.waiting.len() < enough
            && (self.bytes < self.most_bytes || self.waiting.is_empty())
        {
            let piece = self.source.piece();
            match piece.map_err(|error| format!("{}: {error}", self.path.display()))? {
                None => {
                    self.is_over = true;
                    self.correct(self.unplaced.len(), summary);
                }
                Some(piece) => self.add(piece, summary),
            }
        }
        self.waiting.sort();
        self.ready = if self.is_over {
            self.waiting.len()
        } else {
            let until = self.latest.map_or(i64::MIN, |latest| latest.saturating_sub(WINDOW));
            let ready = self.waiting.partition_point(|line| line.start <= until);
            // A batch ends with its last line, so the other half may go in the next turn.
            let too_large = self.bytes >= self.most_bytes;
            let half = if too_large { self.waiting.len().div_ceil(2) } else { 0 };
            ready.max(half).max(self.waiting.len().saturating_sub(MAX_WAITING))
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
        batch.left = batch.entries.len();
        let number = self.done_batches + self.batches.len() as u32;
        self.unplaced.extend((0..).zip(&batch.entries).map(|(index, entry)| Unplaced {
            logged: entry.logged,
            batch: number,
            index,
        }));
        self.bytes += batch.size();
        self.batches.push_back(batch);
        // The others wait for lines that say whether they are right.
        self.correct(self.unplaced.len().saturating_sub(WITNESSES), summary);
    }

    /// Corrects the times of the first `count` lines that were read, which wait for their turn then.
    ///
    /// A clock may jump. A single line with a time far from its neighbours takes theirs. If the clock was set back, or an older
    /// log follows, all that follows is moved, so that time goes on.
    fn correct(&mut self, count: usize, summary: &mut Summary) {
        for at in 0..count {
            let Unplaced { logged: written, batch, index } = self.unplaced[at];
            let logged = written.saturating_add(self.shift);
            let behind = &self.unplaced[at + 1..];
            let behind = &behind[..behind.len().min(WITNESSES)];
            let shift = self.shift;
            let mut witnesses = behind.iter().map(|line| line.logged.saturating_add(shift));
            let latest = self.latest.unwrap_or_else(|| witnesses.clone().fold(logged, i64::min));
            let is_ahead = logged > latest.saturating_add(WINDOW);
            let is_behind = logged < latest.saturating_sub(WINDOW);
            let mut moved = self.shift;
            if is_ahead
                && !behind.is_empty()
                && witnesses.clone().all(|time| time < logged.saturating_sub(WINDOW))
            {
                summary.odd_times += 1;
                moved = latest.saturating_sub(written);
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
            let entries = &mut self.batches[(batch - self.done_batches) as usize].entries;
            let entry = &mut entries[index as usize];
            entry.start = entry.start.saturating_add(moved);
            self.waiting.push(Waiting { start: entry.start, batch, index });
        }
        self.unplaced.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use jiff::tz::TimeZone;

    use super::*;

    const FORMAT: &str = "$remote_addr [$time_local] \"$request\"";

    fn log(source: impl Read + 'static) -> OrderedLog {
        let format = Format::candidates(Some(FORMAT), &[], &[]).expect("a format").remove(0);
        let times = TimeReader::new(TimeZone::UTC, None);
        OrderedLog::new(PathBuf::new(), Source::of(Box::new(source)), format, times)
    }

    fn line(year: u32, path: &str) -> String {
        format!("::1 [27/Nov/{year}:13:47:12 +0000] \"GET {path} HTTP/1.1\"\n")
    }

    #[test]
    fn lines_that_wait_take_a_bounded_number_of_bytes_however_long_they_are() {
        let long = line(2026, &format!("/{}", "x".repeat(16 << 10)));
        let text = std::io::Cursor::new(long.repeat(512));
        let mut log = log(text.chain(std::io::Cursor::new(line(2026, "/last"))));
        log.most_bytes = 3 << 20;
        let (mut summary, mut count) = (Summary::default(), 0);
        while log.next_start(&mut summary).expect("text").is_some() {
            let held: usize = log.batches.iter().map(Batch::size).sum();
            assert_eq!(held, log.bytes);
            assert!(held <= 6 << 20, "{held} bytes");
            assert!(log.next(0).is_some());
            count += 1;
        }
        assert_eq!(count, 513);
    }

    #[test]
    fn an_odd_time_at_the_end_of_a_piece_does_not_move_what_follows() {
        let piece = |text: String| Piece { text, too_long: 0 };
        let mut log = log(std::io::empty());
        let mut summary = Summary::default();
        log.add(piece(line(2026, "/").repeat(100) + &line(2036, "/odd")), &mut summary);
        log.add(piece(line(2026, "/").repeat(100)), &mut summary);
        let mut starts = Vec::new();
        while let Some(start) = log.next_start(&mut summary).expect("no text") {
            starts.push(start);
            assert!(log.next(start).is_some());
        }
        assert_eq!((starts.len(), summary.odd_times, summary.set_back), (201, 1, 0));
        assert!(starts.iter().all(|start| *start == starts[0]));
    }
}
