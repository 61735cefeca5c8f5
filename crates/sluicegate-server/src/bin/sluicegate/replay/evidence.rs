//! What rules see of a response of a log, and what they look for that the log does not have.

use sluicegate_core::adapter::{HeaderLines, Reply, ReplyHead, ReplyRecord};
use sluicegate_core::cost::RunningCost;

use crate::log::{Lacks, Record};

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
