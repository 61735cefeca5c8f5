//! Access logs: the requests that were there.
//!
//! `source` reads text in pieces of whole lines, `format` and what it names reads lines, `order` sorts them by the time that
//! requests came, and [`Records`] merges several logs. Memory is bounded, whatever a log has in it.

mod field;
mod format;
mod json;
mod order;
mod record;
mod source;
mod template;
mod time;

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;

use self::field::{Draft, Unread};
use self::format::Format;
use self::order::{OrderedLog, WINDOW};
pub(crate) use self::record::{Lacks, Record, RecordView};
use self::source::{LONGEST, Source};
use self::time::TimeReader;
use crate::terminal::escaped;

/// Which logs, and how to read them.
#[derive(Debug, Args)]
pub(crate) struct LogFiles {
    /// Access logs, in any order, `-` for the standard input. They may be compressed by gzip or Zstandard, and are merged by
    /// time.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// The format of the logs: the name of one of combined, main, common, vhost, envoy, haproxy, alb, json, caddy, traefik, google, azure
    /// and csv, or the format string of nginx, Apache or Envoy, such as `$remote_addr [$time_local] "$request" $status`.
    /// Without it, the first lines tell.
    #[arg(long, value_name = "FORMAT", help_heading = "Logs")]
    format: Option<String>,
    /// What the values of JSON and CSV mean: the path of a value, and a variable of nginx, such as
    /// `client.addr=remote_addr,verb=request_method,took=request_time_ms,key=http_x_api_key`.
    #[arg(long, value_name = "NAME=VARIABLE,..", value_delimiter = ',', value_parser = pair, help_heading = "Logs")]
    fields: Vec<(String, String)>,
    /// The time zone of times that name none, and of the hours in a page of `--html`, such as `Europe/Berlin`.
    #[arg(long, value_name = "ZONE", default_value = "UTC", help_heading = "Logs")]
    time_zone: String,
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, meaning) =
        text.split_once('=').ok_or("expected a name and a variable with `=` between them")?;
    Ok((name.trim().to_owned(), meaning.trim().to_owned()))
}

impl LogFiles {
    /// Looks at the first lines of each log.
    pub(crate) fn open(&self) -> Result<Records, Box<dyn Error>> {
        let zone = self.zone()?;
        let size = |path: &PathBuf| {
            std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len())
        };
        // Of a pipe, nobody knows how much there is.
        let sizes: Option<u64> = self.logs.iter().map(size).sum();
        let bar = sizes.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let template = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        bar.set_style(ProgressStyle::with_template(template)?);
        let mut records = Records {
            closed: Vec::new(),
            open: Vec::new(),
            last: i64::MIN,
            summary: Summary::default(),
            bar,
            is_stopped: stopped(),
        };
        for path in &self.logs {
            self.look(path, &zone, &mut records)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        if records.open.is_empty() && records.closed.is_empty() {
            return Err("the logs have no lines".into());
        }
        // The one to open next is the last.
        records.closed.sort_by_key(|log| std::cmp::Reverse(log.first));
        Ok(records)
    }

    /// The time zone.
    pub(crate) fn zone(&self) -> Result<TimeZone, String> {
        TimeZone::get(&self.time_zone).map_err(|_| {
            format!("--time-zone: `{}` is not a zone such as UTC or Europe/Berlin", self.time_zone)
        })
    }

    /// Finds out the format of a log, and when it begins.
    fn look(
        &self,
        path: &Path,
        zone: &TimeZone,
        records: &mut Records,
    ) -> Result<(), Box<dyn Error>> {
        if path.is_dir() {
            return Err("it is a directory, expected a log".into());
        }
        let is_file = path.is_file();
        // A file is opened again later, and counts then.
        let bar = if is_file { ProgressBar::hidden() } else { records.bar.clone() };
        let mut source = Source::open(path, &bar)?;
        let Some(piece) = source.piece()? else { return Ok(()) };
        let first: Vec<_> = piece
            .text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .take(SAMPLE)
            .collect();
        let Some(line) = first.first() else {
            return match piece.too_long {
                0 => Ok(()),
                _ => Err(format!("its lines are longer than {LONGEST} bytes: it is no access log")
                    .into()),
            };
        };
        let times = |format: &Format| {
            let zone = if format.has_zone { TimeZone::UTC } else { zone.clone() };
            TimeReader::new(zone, format.pattern.clone())
        };
        let candidates = Format::candidates(self.format.as_deref(), &self.fields, &first)?;
        let mut best: Option<(Vec<Times>, Format)> = None;
        for format in candidates {
            let read = times_of(&format, &first, &mut times(&format));
            let is_better = best.as_ref().is_none_or(|(known, other)| {
                (read.len(), format.weight()) > (known.len(), other.weight())
            });
            if is_better && !read.is_empty() {
                best = Some((read, format));
            }
        }
        let is_enough = |(read, format): &(Vec<Times>, Format)| {
            read.len() * 2 >= first.len() - usize::from(format.has_titles())
        };
        let (read, format) = best.filter(is_enough).ok_or_else(|| {
            let what = match &self.format {
                None => "its format is unknown: name it with --format, as the server's configuration has it",
                Some(_) => "most of its first lines do not fit --format",
            };
            format!("{what}. The first line is `{}`", shown(line))
        })?;
        if is_newest_first(&read) {
            return Err(NEWEST_FIRST.into());
        }
        let earliest = read.iter().map(|times| times.start).min().unwrap_or_default();
        records.summary.formats.push((path.to_owned(), format.name.clone()));
        let times = times(&format);
        if is_file {
            records.closed.push(ClosedLog {
                path: path.to_owned(),
                first: earliest,
                format,
                times,
            });
        } else {
            let mut log = OrderedLog::new(path.to_owned(), source, format, times);
            log.add(piece, &mut records.summary);
            records.open.push(log);
        }
        Ok(())
    }
}

/// As many lines tell the format.
const SAMPLE: usize = 200;

/// When a request came, and when its line was written, in nanoseconds.
#[derive(Clone, Copy)]
struct Times {
    start: i64,
    logged: i64,
}

const NEWEST_FIRST: &str = "its lines are newest first, and a log is read from its oldest line on. Turn it round, such as with \
                            `tac FILE`, and leave the first line of a CSV where it is";

/// Whether the first lines, of which there are more than a few, go back in time. Lines of answers that took long go to and fro.
fn is_newest_first(read: &[Times]) -> bool {
    /// A clock that is set back makes one step.
    const FEWEST: usize = 8;
    let steps = read.windows(2).map(|pair| pair[1].logged.cmp(&pair[0].logged));
    let (back, other): (Vec<_>, Vec<_>) =
        steps.filter(|step| step.is_ne()).partition(|step| step.is_lt());
    // Lines of less than that are sorted, whatever their order.
    let is_lower = read.first().zip(read.last()).is_some_and(|(a, b)| a.logged - b.logged > WINDOW);
    is_lower && back.len() >= FEWEST && other.len() * 20 <= back.len()
}

/// The times of lines that the format can read. Lines of something else than a request count too.
fn times_of(format: &Format, lines: &[&str], times: &mut TimeReader) -> Vec<Times> {
    let mut copies = String::new();
    let mut headers = vec![None; format.headers.0.len()];
    let mut latest = None;
    let mut starts = Vec::new();
    for line in lines {
        let mut draft = Draft::new(line, &mut copies, times, &mut headers);
        let read = format.read(line, &mut draft).ok_or(Unread::Line);
        match read.and_then(|()| draft.finish(format.is_end)) {
            Ok(entry) => {
                let entry = Times { start: entry.start, logged: entry.logged };
                latest = Some(entry);
                starts.push(entry);
            }
            Err(Unread::Request) => starts.extend(latest),
            Err(Unread::Line) => {}
        }
    }
    starts
}

/// The requests of all logs, in order of the time that they came.
pub(crate) struct Records {
    /// Logs whose time is still to come, the earliest last.
    closed: Vec<ClosedLog>,
    open: Vec<OrderedLog>,
    /// When the last record came.
    last: i64,
    summary: Summary,
    bar: ProgressBar,
    is_stopped: &'static AtomicBool,
}

struct ClosedLog {
    path: PathBuf,
    first: i64,
    format: Format,
    times: TimeReader,
}

impl Records {
    /// The next request. `None`: all logs are over, or somebody pressed ctrl-C.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, Box<dyn Error>> {
        if self.is_stopped.load(Ordering::Relaxed) {
            self.summary.is_stopped = true;
            self.bar.finish_and_clear();
            return Ok(None);
        }
        let next = loop {
            let mut next: Option<(i64, usize)> = None;
            let mut over = None;
            for (index, log) in self.open.iter_mut().enumerate() {
                match log.next_start(&mut self.summary)? {
                    Some(start) if next.is_none_or(|(first, _)| start < first) => {
                        next = Some((start, index));
                    }
                    Some(_) => {}
                    None => over = Some(index),
                }
            }
            if let Some(index) = over {
                self.open.swap_remove(index);
                continue;
            }
            let is_due = |log: &ClosedLog| {
                next.is_none_or(|(start, _)| log.first.saturating_sub(WINDOW) <= start)
            };
            let Some(ClosedLog { path, format, times, .. }) = self.closed.pop_if(|log| is_due(log))
            else {
                break next;
            };
            let source = Source::open(&path, &self.bar)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            self.open.push(OrderedLog::new(path, source, format, times));
        };
        let Some((start, index)) = next else {
            self.bar.finish_and_clear();
            return Ok(None);
        };
        if self.last == i64::MIN {
            self.summary.first = start;
        }
        self.summary.late += u64::from(start < self.last);
        self.last = self.last.max(start);
        self.summary.last = self.last;
        Ok(self.open[index].next(self.last))
    }

    /// What was read so far.
    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }
}

/// How reading went.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// All lines but comments.
    pub(crate) lines: u64,
    /// Lines that do not fit the format.
    unread: u64,
    /// Some of them.
    samples: Vec<String>,
    /// Lines of something else than a request.
    not_requests: u64,
    /// Requests that came earlier than others that were read before them.
    late: u64,
    /// Lines with a time far from those around them.
    odd_times: u64,
    /// How often the clock went back.
    set_back: u64,
    /// The time of the first request, and of the last one.
    first: i64,
    last: i64,
    /// Whether somebody pressed ctrl-C.
    pub(crate) is_stopped: bool,
    formats: Vec<(PathBuf, String)>,
}

/// Most lines that are shown.
const SHOWN: usize = 3;

impl Summary {
    fn unread(&mut self, unread: Unread, line: &str) {
        match unread {
            Unread::Request => self.not_requests += 1,
            Unread::Line => {
                self.unread += 1;
                if self.samples.len() < SHOWN {
                    self.samples.push(shown(line));
                }
            }
        }
    }

    /// # Errors
    ///
    /// More than 5 % of the lines could not be read, so what the others say is not the whole truth. Or the clock went back so often
    /// that nearly all lines were moved to one minute.
    pub(crate) fn check(&self) -> Result<(), String> {
        const OFTEN: u64 = 10;
        let moved = i64::try_from(self.set_back).unwrap_or(i64::MAX).saturating_mul(WINDOW);
        if self.set_back >= OFTEN && self.last.saturating_sub(self.first) < moved {
            return Err(format!(
                "the lines of a log are in no order of time, or newest first: turn it round, such as with `tac FILE`, or sort it{self}"
            ));
        }
        if self.unread * 20 <= self.lines {
            return Ok(());
        }
        let Self { unread, lines, .. } = self;
        Err(format!(
            "{unread} of {lines} lines could not be read, more than 5 %: name the format with --format{self}"
        ))
    }
}

/// What is worth a line, each after a line break.
impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.formats.iter().map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if let [name] = *names {
            write!(out, "\nformat: {name}")?;
        } else {
            for (path, name) in &self.formats {
                write!(out, "\nformat of {}: {name}", path.display())?;
            }
        }
        let mut say = |count: u64, what: &str| match count {
            0 => Ok(()),
            _ => write!(out, "\n{what}: {count}"),
        };
        say(self.unread, "lines that could not be read")?;
        say(self.not_requests, "lines that were no requests of HTTP, and are left out")?;
        say(
            self.late,
            "requests that came more than a minute before their line, and count as later",
        )?;
        say(
            self.odd_times,
            "lines with a time far from those around them, which take the time of those",
        )?;
        say(self.set_back, "times that the clock of a log went back, and what followed was moved")?;
        self.samples.iter().try_for_each(|line| write!(out, "\n  not read: {line}"))
    }
}

/// A line for people: without queries, which may have secrets, and what a terminal would obey.
fn shown(line: &str) -> String {
    const LENGTH: usize = 160;
    let mut text = String::new();
    let mut is_query = false;
    for char in line.chars() {
        if is_query && matches!(char, ' ' | '"') {
            is_query = false;
        }
        if !is_query {
            text.push(char);
        }
        if char == '?' {
            is_query = true;
        }
        if text.len() >= LENGTH {
            text.push('…');
            break;
        }
    }
    escaped(&text)
}

/// Set when somebody presses ctrl-C. The second time, the process ends.
fn stopped() -> &'static AtomicBool {
    static IS_STOPPED: AtomicBool = AtomicBool::new(false);
    static IS_LISTENING: Once = Once::new();
    IS_LISTENING.call_once(|| {
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                while tokio::signal::ctrl_c().await.is_ok() {
                    if IS_STOPPED.swap(true, Ordering::Relaxed) {
                        std::process::exit(AT_ONCE);
                    }
                }
            });
        });
    });
    &IS_STOPPED
}

/// The exit status of a process that did not say what it had read.
const AT_ONCE: i32 = 130;
