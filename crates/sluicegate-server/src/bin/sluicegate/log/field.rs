//! What a part of a line means, and what a line has told so far.

use std::net::IpAddr;

use memchr::{memchr, memrchr};

use super::record::{Entry, Span};
use super::time::{Instant, TimeReader, offset};

/// What a part of a line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// When the line was written, or the request came: the format knows which.
    Time,
    /// When the request came, in formats that have both.
    Start,
    /// Digits behind the time, each unit of this many nanoseconds.
    Fraction(u64),
    /// The zone of the time, such as `+0530`.
    Zone,
    /// How long the answer took, in units of this many nanoseconds. Several durations of one unit add up. Among
    /// several units, only the finest one counts.
    Duration(u64),
    /// The first line of the request: `GET /path HTTP/1.1`.
    Request,
    Method,
    /// The path with the query, or a whole URL.
    Target,
    /// The path as the server has rewritten it. It counts where the line has no other one.
    Rewritten,
    Query,
    Host,
    /// The name of the server, which stands for the host where the line has no other one.
    ServerName,
    Status,
    Bytes,
    /// The address of the client, with or without its port.
    Peer,
    /// The address of the client, with its port. Without brackets, the last number of an address in IPv6 may look like a port.
    PeerWithPort,
    /// The address that the connection is from, which may be a proxy. It counts where the line has no other one.
    Connection,
    /// A field of the request, by its place among the format's names.
    Header(u16),
    Ignore,
}

impl Field {
    pub(super) fn is_time(self) -> bool {
        matches!(self, Self::Time | Self::Start)
    }
}

const SECOND: u64 = 1_000_000_000;

/// Most named fields of a format.
const MAX_HEADERS: usize = 64;

/// The names of the header fields that a format has, in lower case.
#[derive(Debug, Clone, Default)]
pub(super) struct Headers(pub(super) Vec<String>);

impl Headers {
    pub(super) fn field(&mut self, name: &str) -> Field {
        let name = name.to_ascii_lowercase().replace('_', "-");
        // The host is a part of every request.
        if name == "host" {
            return Field::Host;
        }
        let known = self.0.iter().position(|known| *known == name);
        let at = known.unwrap_or(self.0.len());
        if at >= MAX_HEADERS {
            return Field::Ignore;
        }
        if known.is_none() {
            self.0.push(name);
        }
        u16::try_from(at).map_or(Field::Ignore, Field::Header)
    }

    /// The meaning of a name: a variable of nginx, or one of the few names that this command adds.
    pub(super) fn variable(&mut self, name: &str) -> Option<Field> {
        Some(match name {
            "time" | "time_local" | "time_iso8601" | "msec" => Field::Time,
            "start_time" => Field::Start,
            "request_time" => Field::Duration(SECOND),
            "request_time_ms" => Field::Duration(1_000_000),
            "request_time_us" => Field::Duration(1_000),
            "request_time_ns" => Field::Duration(1),
            "request" => Field::Request,
            "request_method" => Field::Method,
            "request_uri" => Field::Target,
            "uri" | "document_uri" => Field::Rewritten,
            "args" | "query_string" => Field::Query,
            "host" => Field::Host,
            "server_name" => Field::ServerName,
            "status" => Field::Status,
            "bytes_sent" | "body_bytes_sent" => Field::Bytes,
            "remote_addr" => Field::Peer,
            "remote_addr_and_port" => Field::PeerWithPort,
            "realip_remote_addr" => Field::Connection,
            "http_referrer" => self.field("referer"),
            "proxy_add_x_forwarded_for" => self.field("x-forwarded-for"),
            _ => self.field(name.strip_prefix("http_").filter(|name| !name.is_empty())?),
        })
    }
}

/// Why a line is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// It does not fit the format.
    Line,
    /// It tells of something that was no request of HTTP, such as TLS on a plain port.
    Request,
}

/// What a line has told so far.
#[derive(Debug)]
pub(super) struct Draft<'b> {
    /// The text of the batch, which the spans of the line are in.
    base: &'b str,
    /// Texts that were escaped.
    copies: &'b mut String,
    times: &'b mut TimeReader,
    headers: &'b mut [Option<Span>],
    time: Option<Instant>,
    start: Option<Instant>,
    fraction: Option<u64>,
    /// How far the zone of the time is ahead of UTC, in nanoseconds.
    offset: i64,
    duration: Option<u64>,
    /// The unit of the duration.
    unit: u64,
    method: Option<Span>,
    path: Option<Span>,
    query: Option<Span>,
    host: Option<Span>,
    status: u16,
    bytes: Option<u64>,
    peer: Option<IpAddr>,
    /// Whether the server writes bytes that could do harm as `#22`, as HAProxy does.
    pub(super) has_codes: bool,
    is_malformed: bool,
}

impl<'b> Draft<'b> {
    pub(super) fn new(
        base: &'b str,
        copies: &'b mut String,
        times: &'b mut TimeReader,
        headers: &'b mut [Option<Span>],
    ) -> Self {
        Self {
            base,
            copies,
            times,
            headers,
            time: None,
            start: None,
            fraction: None,
            offset: 0,
            duration: None,
            unit: u64::MAX,
            method: None,
            path: None,
            query: None,
            host: None,
            status: 0,
            bytes: None,
            peer: None,
            has_codes: false,
            is_malformed: false,
        }
    }

    /// The span of a part of the line, which is kept if the line is not where it is from.
    fn span(&mut self, text: &str) -> Span {
        let at = (text.as_ptr() as usize).wrapping_sub(self.base.as_ptr() as usize);
        if at <= self.base.len() && text.len() <= self.base.len() - at {
            return Span::of(at, text.len());
        }
        let at = self.copies.len();
        self.copies.push_str(text);
        Span::copied(at, text.len())
    }

    /// Takes the text of a field. What makes no sense is as good as missing.
    #[inline]
    pub(super) fn text(&mut self, field: Field, text: &str) {
        // What is not known is a dash in most formats.
        if matches!(text, "" | "-") {
            self.is_malformed |= field == Field::Request;
            return;
        }
        match field {
            Field::Time => finer(&mut self.time, self.times.read(text)),
            Field::Start => finer(&mut self.start, self.times.read(text)),
            Field::Fraction(unit) => {
                self.fraction = text.parse().ok().and_then(|count: u64| count.checked_mul(unit));
                if self.fraction.is_some() {
                    self.times.refine(unit);
                }
            }
            Field::Zone => match offset(text) {
                Some(seconds) => self.offset = i64::from(seconds) * SECOND as i64,
                // In another zone, it would be another time.
                None => (self.time, self.start) = (None, None),
            },
            Field::Duration(unit) => self.add_duration(duration(text, unit), unit),
            Field::Request => self.request(text),
            Field::Method => self.method = Some(self.span(text)),
            Field::Target => self.target(text),
            Field::Rewritten if self.path.is_none() => self.target(text),
            Field::Query => {
                let query = text.strip_prefix('?').unwrap_or(text);
                if !query.is_empty() {
                    self.query = Some(self.span(query));
                }
            }
            Field::Host => self.host = Some(self.span(text)),
            Field::ServerName if self.host.is_none() => self.host = Some(self.span(text)),
            Field::Status => self.status = text.parse().unwrap_or(0),
            Field::Bytes => self.bytes = text.parse().ok().or(self.bytes),
            Field::Peer => self.peer = address(text).or(self.peer),
            Field::PeerWithPort => {
                let address_alone = text.rsplit_once(':').and_then(|(text, _)| address(text));
                self.peer = address_alone.or_else(|| address(text)).or(self.peer);
            }
            Field::Connection if self.peer.is_none() => self.peer = address(text),
            Field::Header(at) => {
                let span = self.span(text);
                if let Some(header) = self.headers.get_mut(usize::from(at)) {
                    *header = Some(span);
                }
            }
            Field::Rewritten | Field::ServerName | Field::Connection | Field::Ignore => {}
        }
    }

    /// Takes a further line of a field of the request. A line break stands between lines, which no line has in it.
    pub(super) fn further_line(&mut self, field: Field, line: &str) {
        let Field::Header(at) = field else { return };
        match self.headers.get_mut(usize::from(at)) {
            Some(Some(_)) if matches!(line, "" | "-") => {}
            Some(Some(lines)) => lines.add_line(line, self.base, self.copies),
            _ => self.text(field, line),
        }
    }

    /// Takes a number of JSON.
    pub(super) fn number(&mut self, field: Field, number: f64) {
        match field {
            Field::Time => finer(&mut self.time, self.times.number(number)),
            Field::Start => finer(&mut self.start, self.times.number(number)),
            Field::Duration(unit) if number >= 0.0 => {
                self.add_duration(Some((number * unit as f64) as u64), unit);
            }
            Field::Status if (100.0..1000.0).contains(&number) => self.status = number as u16,
            Field::Bytes if number >= 0.0 => self.bytes = Some(number as u64),
            _ => {}
        }
    }

    fn add_duration(&mut self, duration: Option<u64>, unit: u64) {
        let Some(duration) = duration.filter(|_| unit <= self.unit) else { return };
        // A log may have one duration twice, such as `%T` and `%D`.
        let before = if unit == self.unit { self.duration.unwrap_or(0) } else { 0 };
        self.duration = Some(before.saturating_add(duration));
        self.unit = unit;
    }

    fn request(&mut self, line: &str) {
        let Some((method, rest)) = cut(line, b' ') else {
            self.is_malformed = true;
            return;
        };
        // Envoy writes a dash for what it could not read.
        let is_method = !matches!(method, "" | "-")
            && method
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        if !is_method {
            self.is_malformed = true;
            return;
        }
        self.method = Some(self.span(method));
        // Without a version, it is a request of HTTP/0.9, or the server logs none.
        let target = match memrchr(b' ', rest.as_bytes()) {
            Some(at) if rest[at + 1..].starts_with("HTTP/") => &rest[..at],
            _ => rest,
        };
        self.target(target);
    }

    fn target(&mut self, target: &str) {
        // Where it is no code, `#` begins a fragment, which frameworks drop.
        let is_code = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
        let target = match cut(target, b'#') {
            Some((target, rest)) if !(self.has_codes && is_code(rest)) => target,
            _ => target,
        };
        let (before, query) = cut(target, b'?').unzip();
        let mut path = before.unwrap_or(target);
        if !path.starts_with('/')
            && let Some((_, behind)) = path.split_once("://")
        {
            let at = behind.find('/').unwrap_or(behind.len());
            if self.host.is_none() && at > 0 {
                self.host = Some(self.span(&behind[..at]));
            }
            path = &behind[at..];
        }
        let path = if path.is_empty() { "/" } else { path };
        self.path = Some(self.span(path));
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            self.query = Some(self.span(query));
        }
    }

    /// The record, if the line has a time and a request. `is_end`: the time is that of the end.
    #[inline]
    pub(super) fn finish(self, is_end: bool) -> Result<Entry, Unread> {
        let time = self.time.or(self.start).ok_or(Unread::Line)?;
        if self.is_malformed {
            return Err(Unread::Request);
        }
        // What was answered without a path was no request.
        let path =
            self.path.ok_or(if self.status == 0 { Unread::Line } else { Unread::Request })?;
        let time_ns = time.ns.saturating_sub(self.offset);
        let time_ns = time_ns.saturating_add_unsigned(self.fraction.unwrap_or(0));
        let duration = self.duration;
        let start = match self.start {
            Some(start) => start.ns,
            None if is_end => time_ns.saturating_sub_unsigned(duration.unwrap_or(0)),
            None => time_ns,
        };
        Ok(Entry {
            start,
            // The line is written when the answer is over.
            logged: match self.time {
                Some(_) if is_end => time_ns,
                _ => start.saturating_add_unsigned(duration.unwrap_or(0)),
            },
            duration,
            method: self.method,
            path,
            query: self.query,
            host: self.host,
            status: Some(self.status).filter(|status| (100..1000).contains(status)),
            bytes: self.bytes,
            peer: self.peer,
        })
    }
}

/// The text before the first of these bytes, which is one of ASCII, and the text behind it. Several times as fast as that of the
/// standard library where texts are short.
#[inline]
pub(super) fn cut(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = memchr(byte, text.as_bytes())?;
    Some((&text[..at], &text[at + 1..]))
}

/// A log may have a time twice, such as `$time_local` and `$msec`: the finer one counts.
fn finer(time: &mut Option<Instant>, other: Option<Instant>) {
    if let Some(other) = other
        && time.is_none_or(|time| other.unit <= time.unit)
    {
        *time = Some(other);
    }
}

/// A duration such as `0.086`, `12ms` or `0.012s`. Load balancers write −1 for what never happened, and HAProxy a plus
/// sign before what was not over.
fn duration(text: &str, unit: u64) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let at = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(at);
    let unit = match suffix {
        "" => unit,
        "s" => SECOND,
        "ms" => 1_000_000,
        "us" | "µs" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        total = total.checked_add(u64::from(digit.checked_sub(b'0')?) * place)?;
    }
    (!number.is_empty()).then_some(total)
}

/// An address, with or without a port or a zone.
fn address(text: &str) -> Option<IpAddr> {
    let parsed = text.parse().ok().or_else(|| {
        if let Some(rest) = text.strip_prefix('[') {
            return rest.split_once(']')?.0.parse().ok();
        }
        if let Some((address, _)) = text.split_once('%') {
            return address.parse().ok();
        }
        text.rsplit_once(':')?.0.parse().ok()
    });
    parsed.map(|address: IpAddr| address.to_canonical())
}
