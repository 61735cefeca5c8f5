//! One request of a log.

use std::any::TypeId;
use std::cell::RefCell;
use std::net::IpAddr;

use sluicegate_core::key::{Claims, Readings, View};

/// A part of the text of a batch, or of its copies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    at: u32,
    len: u32,
}

/// Set where a span is of a copy.
const COPY: u32 = 1 << 31;

impl Span {
    /// A batch is far smaller than a span can say.
    pub(super) fn of(at: usize, len: usize) -> Self {
        Self { at: at as u32, len: len as u32 }
    }

    pub(super) fn copied(at: usize, len: usize) -> Self {
        Self { at: at as u32 | COPY, len: len as u32 }
    }

    /// Adds a line to the text. One that is not the last of the copies is copied, so that a text of many lines is copied once.
    pub(super) fn add_line(&mut self, line: &str, text: &str, copies: &mut String) {
        let end = (self.at & !COPY) as usize + self.len as usize;
        if self.at & COPY == 0 || end != copies.len() {
            let known = self.of_texts(text, copies).to_owned();
            *self = Self::copied(copies.len(), known.len());
            copies.push_str(&known);
        }
        copies.extend(["\n", line]);
        self.len += 1 + line.len() as u32;
    }

    /// The text, in that of a batch or in its copies.
    pub(super) fn of_texts<'a>(self, text: &'a str, copies: &'a str) -> &'a str {
        let Self { at, len } = self;
        let (text, at) = if at & COPY == 0 { (text, at) } else { (copies, at & !COPY) };
        text.get(at as usize..at as usize + len as usize).unwrap_or_default()
    }
}

/// What is kept of a line until its turn comes.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// When the request came, in nanoseconds since the epoch.
    pub(super) start: i64,
    /// The time by which the log is ordered.
    pub(super) logged: i64,
    pub(super) duration: Option<u64>,
    pub(super) method: Option<Span>,
    pub(super) path: Span,
    pub(super) query: Option<Span>,
    pub(super) host: Option<Span>,
    pub(super) status: Option<u16>,
    pub(super) bytes: Option<u64>,
    pub(super) peer: Option<IpAddr>,
}

/// Lines that were read together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) text: String,
    pub(super) copies: String,
    pub(super) entries: Vec<Entry>,
    /// For each entry, the fields that the format has names for.
    pub(super) headers: Vec<Option<Span>>,
    /// Entries whose turn is still to come.
    pub(super) left: usize,
}

impl Batch {
    /// The memory that it takes, in bytes.
    pub(super) fn size(&self) -> usize {
        self.text.capacity()
            + self.copies.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.headers.capacity() * size_of::<Option<Span>>()
    }

    fn text(&self, span: Span) -> &str {
        span.of_texts(&self.text, &self.copies)
    }

    pub(super) fn record<'a>(
        &'a self,
        index: usize,
        start: i64,
        resolution: u64,
        names: &'a [String],
    ) -> Record<'a> {
        let entry = &self.entries[index];
        let text = |span: Option<Span>| span.map(|span| self.text(span));
        Record {
            start,
            resolution,
            duration: entry.duration,
            method: text(entry.method).unwrap_or("GET"),
            path: self.text(entry.path),
            query: text(entry.query),
            host: text(entry.host),
            status: entry.status,
            bytes: entry.bytes,
            peer: entry.peer,
            names,
            batch: self,
            headers: &self.headers[index * names.len()..(index + 1) * names.len()],
        }
    }
}

/// One request of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// When the request came, in nanoseconds since the epoch. It never goes back from record to record.
    pub(crate) start: i64,
    /// The finest unit of the log's times so far, in nanoseconds. The request came up to this much later.
    pub(crate) resolution: u64,
    /// How long the answer took, in nanoseconds.
    pub(crate) duration: Option<u64>,
    /// The method. `GET` where the log has none.
    pub(crate) method: &'a str,
    /// The path without the query.
    pub(crate) path: &'a str,
    /// The query without its `?`.
    pub(crate) query: Option<&'a str>,
    pub(crate) host: Option<&'a str>,
    pub(crate) status: Option<u16>,
    /// How many bytes the answer had.
    pub(crate) bytes: Option<u64>,
    /// The address that the connection was from.
    pub(crate) peer: Option<IpAddr>,
    names: &'a [String],
    batch: &'a Batch,
    headers: &'a [Option<Span>],
}

impl<'a> Record<'a> {
    /// A field of the request that the log has, such as `user-agent`, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers[self.place(name)?].and_then(|span| self.batch.text(span).lines().next())
    }

    /// The place of a field of requests, if the log has one.
    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.eq_ignore_ascii_case(name))
    }

    /// What rules see of it.
    pub(crate) fn view(&self) -> RecordView<'a> {
        RecordView { record: *self, readings: Readings::new(), lacks: None }
    }

    /// Like [`view`](Self::view), and writes down what rules look for and the log does not have.
    pub(crate) fn view_noting(&self, lacks: &'a Lacks) -> RecordView<'a> {
        RecordView { lacks: Some(lacks), ..self.view() }
    }
}

/// What rules have looked for and a log does not have, in words.
#[derive(Debug, Default)]
pub(crate) struct Lacks(RefCell<Vec<String>>);

impl Lacks {
    pub(crate) fn add(&self, what: impl FnOnce() -> String) {
        self.0.borrow_mut().push(what());
    }

    /// What was looked for and not found since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut lacks = std::mem::take(&mut *self.0.borrow_mut());
        lacks.sort();
        lacks.dedup();
        lacks
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

/// What rules see of a request of a log. What the log does not have is missing.
#[derive(Debug)]
pub(crate) struct RecordView<'a> {
    record: Record<'a>,
    readings: Readings,
    lacks: Option<&'a Lacks>,
}

impl RecordView<'_> {
    fn lacks(&self, what: impl FnOnce() -> String) {
        if let Some(lacks) = self.lacks {
            lacks.add(what);
        }
    }
}

impl View for RecordView<'_> {
    type Request = ();

    fn request(&self) -> &() {
        &()
    }

    fn method(&self) -> &str {
        self.record.method
    }

    fn path(&self) -> &str {
        self.record.path
    }

    fn routed_path(&self) -> &str {
        self.record.path
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn query(&self) -> Option<&str> {
        self.record.query
    }

    fn host(&self) -> Option<&str> {
        if self.record.host.is_none() {
            self.lacks(|| "the host".to_owned());
        }
        self.record.host
    }

    fn route(&self) -> Option<&str> {
        self.lacks(|| "the route".to_owned());
        None
    }

    /// Not known, so the path is compared.
    fn is_route(&self, _: &str) -> Option<bool> {
        None
    }

    fn peer(&self) -> Option<IpAddr> {
        if self.record.peer.is_none() {
            self.lacks(|| "the address of the client".to_owned());
        }
        self.record.peer
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let place = self.record.place(name);
        if name.eq_ignore_ascii_case("host") {
            // A log has the field as the host of the request, or not at all.
            self.host();
        } else if place.is_none() {
            self.lacks(|| format!("the header `{name}`"));
        }
        let span = place.and_then(|place| self.record.headers[place]);
        let lines = span.map(|span| self.record.batch.text(span).split('\n'));
        lines.into_iter().flatten().map(str::as_bytes)
    }

    fn extension<T: Send + Sync + 'static, O>(&self, _: impl FnOnce(&T) -> O) -> Option<O> {
        let is_claims = TypeId::of::<T>() == TypeId::of::<Claims>();
        self.lacks(|| if is_claims { "claims" } else { "tokens" }.to_owned());
        None
    }

    fn peer_hint(&self) -> &'static str {
        "the log has no address of clients: log it, or choose another key"
    }

    fn route_hint(&self) -> &'static str {
        "a log has no routes"
    }
}
