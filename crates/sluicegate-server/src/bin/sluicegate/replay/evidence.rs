//! What rules see of a request of a log, and of its response; and what they look for that the log does not have.

use std::any::TypeId;
use std::cell::RefCell;
use std::net::IpAddr;

use sluicegate_core::adapter::{HeaderLines, Reply, ReplyHead, ReplyRecord};
use sluicegate_core::cost::RunningCost;
use sluicegate_core::key::{Claims, Readings, View};

use crate::log::{Record, RecordView};

/// What a log does not have, in words.
#[derive(Debug, Default)]
pub(super) struct Lacks(RefCell<Vec<String>>);

impl Lacks {
    fn add(&self, what: impl FnOnce() -> String) {
        self.0.borrow_mut().push(what());
    }

    /// What was looked for and not found since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        let mut lacks = std::mem::take(&mut *self.0.borrow_mut());
        lacks.sort();
        lacks.dedup();
        lacks
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

/// A request of a log.
pub(super) struct LoggedRequest<'r> {
    record: Record<'r>,
    view: RecordView<'r>,
    lacks: &'r Lacks,
}

impl<'r> LoggedRequest<'r> {
    pub(super) fn new(record: Record<'r>, lacks: &'r Lacks) -> Self {
        Self { record, view: record.view(), lacks }
    }
}

impl View for LoggedRequest<'_> {
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
        self.view.readings()
    }

    fn query(&self) -> Option<&str> {
        self.record.query
    }

    fn host(&self) -> Option<&str> {
        if self.record.host.is_none() {
            self.lacks.add(|| "the host".to_owned());
        }
        self.record.host
    }

    fn route(&self) -> Option<&str> {
        self.lacks.add(|| "the route".to_owned());
        None
    }

    /// Not known, so the path is compared.
    fn is_route(&self, pattern: &str) -> Option<bool> {
        self.view.is_route(pattern)
    }

    fn peer(&self) -> Option<IpAddr> {
        if self.record.peer.is_none() {
            self.lacks.add(|| "the address of the client".to_owned());
        }
        self.record.peer
    }

    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        if name.eq_ignore_ascii_case("host") {
            // A log has the field as the host of the request, or not at all.
            self.host();
        } else if !self.record.has_header(name) {
            self.lacks.add(|| format!("the header `{name}`"));
        }
        self.record.header(name).map(str::as_bytes).into_iter()
    }

    fn extension<T: Send + Sync + 'static, O>(&self, _: impl FnOnce(&T) -> O) -> Option<O> {
        let is_claims = TypeId::of::<T>() == TypeId::of::<Claims>();
        let what = if is_claims { "claims" } else { "tokens" };
        self.lacks.add(|| what.to_owned());
        None
    }

    fn peer_hint(&self) -> &'static str {
        self.view.peer_hint()
    }

    fn route_hint(&self) -> &'static str {
        self.view.route_hint()
    }
}

/// A response of a log.
#[derive(Debug)]
pub(super) struct LoggedResponse {
    status: Option<u16>,
    /// As the field `Content-Length` has it.
    bytes: Option<String>,
    lacks: Lacks,
}

impl LoggedResponse {
    pub(super) fn new(record: &Record<'_>) -> Self {
        let bytes = record.bytes.map(|bytes| bytes.to_string());
        Self { status: record.status, bytes, lacks: Lacks::default() }
    }

    pub(super) fn lacks(&self) -> &Lacks {
        &self.lacks
    }
}

impl Reply for LoggedResponse {
    fn status(&self) -> u16 {
        if self.status.is_none() {
            self.lacks.add(|| "the status".to_owned());
        }
        self.status.unwrap_or(200)
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        if name.eq_ignore_ascii_case("content-length") && self.bytes.is_some() {
            return self.bytes.as_deref().map(str::as_bytes);
        }
        self.lacks.add(|| format!("the header `{name}`"));
        None
    }

    fn cost(&self) -> Option<u64> {
        self.lacks.add(|| "the cost".to_owned());
        None
    }

    fn is_refusal(&self) -> bool {
        false
    }

    /// Asked of every response, so it is nothing to tell.
    fn running(&self) -> Option<RunningCost> {
        None
    }
}

impl ReplyHead for LoggedResponse {
    fn record(&self) -> ReplyRecord {
        struct Length(Option<String>);

        impl HeaderLines for Length {
            fn first_line(&self, name: &str) -> Option<&[u8]> {
                let length = self.0.as_deref()?;
                name.eq_ignore_ascii_case("content-length").then_some(length.as_bytes())
            }
        }

        let status = Self { status: self.status, bytes: None, lacks: Lacks::default() };
        ReplyRecord::new(&status, Length(self.bytes.clone()))
    }
}
