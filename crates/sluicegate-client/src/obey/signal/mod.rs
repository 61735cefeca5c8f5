//! What a response tells about the limits of its server.
//!
//! Fields are read as they were specified, or as the large APIs send them. A field that is malformed is ignored, and so
//! are all fields of a response that a cache has kept (`Age` above 0): they speak of a moment that is over.

mod grpc;
mod legacy;
mod line;
mod rate_limit;
mod time;

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use smallvec::SmallVec;

pub use self::rate_limit::MAX_QUOTAS;

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
    /// The server did not serve the request because too many came: 429, an error with `Retry-After`, 403 with nothing left
    /// of a quota, and `RESOURCE_EXHAUSTED` of gRPC.
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
        let date = || line::date(headers).unwrap_or(since_epoch);
        if status.is_client_error() || status.is_server_error() {
            signal.retry_after = time::retry_after(headers, date);
        }
        if let Some(age) = line::age(headers) {
            // The cache has answered, and would again before that. What it says of limits was said to another client.
            signal.retry_after = signal.retry_after.map(|wait| wait.saturating_sub(age));
            return signal;
        }
        signal.refused = status == StatusCode::TOO_MANY_REQUESTS || signal.retry_after.is_some();
        grpc::read(headers, &mut signal);
        if !rate_limit::read(headers, &mut signal.quotas) {
            legacy::read(headers, date, &mut signal.quotas);
        }
        // GitHub refuses so what is beyond a quota.
        signal.refused |= status == StatusCode::FORBIDDEN && signal.exhausted().next().is_some();
        signal
    }

    /// How long to wait after a refusal, where the response tells: for as long as it asks, else until the last reset of
    /// what is used up.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let reset = || self.exhausted().filter_map(|quota| quota.reset).max();
        self.retry_after.or_else(|| if self.refused { reset() } else { None })
    }

    /// The quotas of which nothing is left.
    fn exhausted(&self) -> impl Iterator<Item = &Quota> {
        self.quotas.iter().filter(|quota| quota.remaining == 0)
    }
}

#[cfg(test)]
mod tests;
