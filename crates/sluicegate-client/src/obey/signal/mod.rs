//! What a response tells about the limits of its server.
//!
//! Fields are read as they were specified, or as the large APIs send them. A field that is malformed is ignored, and so
//! are all fields of a response that a cache has kept (`Age` above 0): they speak of a moment that is over.

mod grpc;
mod legacy;
mod rate_limit;
mod retry_after;
mod time;

use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};
use smallvec::SmallVec;

/// Most quotas that are read from one response. Servers announce one or two, three at most.
pub const MAX_QUOTAS: usize = 8;

/// What a response tells about the limits of its server.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, StatusCode};
/// use sluicegate_client::obey::Signal;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "30".parse()?);
/// headers.insert("ratelimit", "\"default\";r=0;t=20".parse()?);
/// let signal = Signal::read(StatusCode::TOO_MANY_REQUESTS, &headers, Duration::ZERO);
///
/// assert!(signal.refused);
/// assert_eq!(signal.retry_after, Some(Duration::from_secs(30)));
/// assert_eq!(signal.quotas[0].remaining, 0);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Signal {
    /// The server did not serve the request because too many came.
    pub refused: bool,
    /// How long the server asks to wait, from now on.
    pub retry_after: Option<Duration>,
    /// The server asks not to repeat this request at all (gRPC's negative pushback).
    pub never_retry: bool,
    /// The quotas that the server announces.
    pub quotas: SmallVec<[Quota; 2]>,
}

/// One quota that a server announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Tells the policies of a server apart, with their partition keys: a hash of both.
    pub policy: u64,
    /// How much may be used in a window.
    pub limit: Option<u64>,
    /// The length of the window.
    pub window: Option<Duration>,
    /// How much is left.
    pub remaining: u64,
    /// How long no more than that may be used, from now on.
    pub reset: Option<Duration>,
    /// It counts requests, and nothing else such as bytes or tokens.
    pub counts_requests: bool,
}

impl Signal {
    /// Reads the head of a response that came `since_epoch` after the Unix epoch.
    ///
    /// The time is used for fields that name a point in time, where the response itself has no `Date`.
    pub fn read(status: StatusCode, headers: &HeaderMap, since_epoch: Duration) -> Self {
        let mut signal = Self::default();
        let names = Names::of(headers);
        if names.age && is_cached(headers) {
            return signal;
        }
        signal.refused = status == StatusCode::TOO_MANY_REQUESTS;
        if status.is_client_error() || status.is_server_error() {
            signal.retry_after = retry_after::read(headers, since_epoch);
            signal.refused |= signal.retry_after.is_some();
        }
        if names.grpc {
            grpc::read(headers, &mut signal);
        }
        let is_draft = names.draft && rate_limit::read(headers, &mut signal.quotas);
        if names.legacy && !is_draft {
            legacy::read(headers, since_epoch, &mut signal.quotas);
        }
        signal
    }
}

/// Which fields are there at all. One look at every name costs less than a search for each that may be there.
#[derive(Default)]
struct Names {
    age: bool,
    grpc: bool,
    draft: bool,
    legacy: bool,
}

impl Names {
    fn of(headers: &HeaderMap) -> Self {
        let mut names = Self::default();
        for name in headers.keys() {
            match name.as_str() {
                "age" => names.age = true,
                "grpc-status" => names.grpc = true,
                "ratelimit" => names.draft = true,
                name if name.starts_with("x-rate") || name.starts_with("ratelimit-") => {
                    names.legacy = true;
                }
                _ => {}
            }
        }
        names
    }
}

fn is_cached(headers: &HeaderMap) -> bool {
    // A malformed age counts as no age.
    headers.get(header::AGE).and_then(|age| time::digits(age.as_bytes())).is_some_and(|age| age > 0)
}

/// The only line of the field, if it is text. A field that allows one value and appears twice is malformed.
fn line<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut lines = headers.get_all(name).into_iter();
    let line = lines.next()?;
    match lines.next() {
        None => line.to_str().ok().map(str::trim),
        Some(_) => None,
    }
}

/// The time of the response by the server's clock, or by our own if the server does not tell.
fn date(headers: &HeaderMap, since_epoch: Duration) -> Duration {
    line(headers, &header::DATE).and_then(time::http_date).unwrap_or(since_epoch)
}

#[cfg(test)]
mod tests;
