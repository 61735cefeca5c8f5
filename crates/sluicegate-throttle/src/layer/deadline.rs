use std::time::Duration;

use sluicegate_core::key::View;

use super::criticality::Unreadable;
use crate::grpc_timeout;

/// Says how long the client of a request waits for the response.
///
/// A [`Duration`] is one time for all requests. [`DeadlineHeader`] reads milliseconds from a header, and
/// [`GrpcTimeout`] reads gRPC's field `grpc-timeout`.
pub trait Deadline<V: View> {
    /// How long the client waits from now on; `None` where that is unknown.
    ///
    /// # Errors
    ///
    /// When it cannot be read. The error holds the time to use instead.
    fn timeout(&self, view: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>>;
}

/// No deadlines.
#[derive(Debug, Clone, Copy)]
pub struct NoDeadline;

impl<V: View> Deadline<V> for NoDeadline {
    fn timeout(&self, _: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        Ok(None)
    }
}

impl<V: View> Deadline<V> for Duration {
    fn timeout(&self, _: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        Ok(Some(*self))
    }
}

/// The time that the client waits, in whole milliseconds in a header: `x-deadline-ms: 250`.
#[derive(Debug, Clone)]
#[must_use]
pub struct DeadlineHeader {
    name: String,
    otherwise: Option<Duration>,
}

impl DeadlineHeader {
    /// Reads the header `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into().to_ascii_lowercase(), otherwise: None }
    }

    /// The time for requests without the header, and for those in which it cannot be read.
    pub const fn otherwise(mut self, timeout: Duration) -> Self {
        self.otherwise = Some(timeout);
        self
    }
}

impl<V: View> Deadline<V> for DeadlineHeader {
    fn timeout(&self, view: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        read(view, &self.name, self.otherwise, |digits| number(digits).map(Duration::from_millis))
    }
}

/// The field `grpc-timeout`, which clients of gRPC send for calls with a deadline: `250m`.
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct GrpcTimeout {
    otherwise: Option<Duration>,
}

impl GrpcTimeout {
    /// Reads the field.
    pub const fn new() -> Self {
        Self { otherwise: None }
    }

    /// The time for requests without the field, and for those in which it cannot be read.
    pub const fn otherwise(mut self, timeout: Duration) -> Self {
        self.otherwise = Some(timeout);
        self
    }
}

impl<V: View> Deadline<V> for GrpcTimeout {
    fn timeout(&self, view: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        read(view, "grpc-timeout", self.otherwise, grpc_timeout::read)
    }
}

fn read<V: View>(
    view: &V,
    name: &str,
    otherwise: Option<Duration>,
    parse: impl Fn(&str) -> Option<Duration>,
) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
    let mut lines = view.header_lines(name);
    let Some(line) = lines.next() else { return Ok(otherwise) };
    let text = std::str::from_utf8(line).ok().map(str::trim);
    let timeout = text.and_then(parse).filter(|_| lines.next().is_none());
    timeout.map(Some).ok_or(Unreadable(otherwise))
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}
