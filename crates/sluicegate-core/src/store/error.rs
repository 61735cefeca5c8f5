use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::limit::LimitError;

/// The reason why a store could not decide.
///
/// It is never an answer about the client: a failure of the store is not "too many requests".
#[derive(Debug, Clone)]
pub struct StoreError {
    kind: ErrorKind,
    /// Whether a layer refuses the request even if it admits requests when its store fails.
    must_refuse: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorKind {
    Full,
    Unavailable,
    TooSlow,
    Unsupported,
}

impl StoreError {
    /// The store is bounded, and every row that could hold the key is in use.
    pub fn full() -> Self {
        Self { kind: ErrorKind::Full, must_refuse: false, source: None }
    }

    /// Like [`full`](Self::full), for a request that must not pass uncounted. A layer answers 503, even if it
    /// [admits](crate::store::OnStoreError::Admit) requests when its store fails.
    pub fn full_and_refusing() -> Self {
        Self { must_refuse: true, ..Self::full() }
    }

    /// The store cannot be reached, or failed.
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: ErrorKind::Unavailable,
            must_refuse: false,
            source: Some(Arc::from(source.into())),
        }
    }

    /// The store did not answer within its deadline.
    pub fn too_slow() -> Self {
        Self { kind: ErrorKind::TooSlow, must_refuse: false, source: None }
    }

    /// The store cannot keep this limit.
    pub fn unsupported(reason: LimitError) -> Self {
        Self { kind: ErrorKind::Unsupported, must_refuse: false, source: Some(Arc::new(reason)) }
    }

    /// The names of the kinds in metrics.
    #[cfg(feature = "metrics")]
    pub(crate) const KINDS: [&'static str; 4] = ["full", "unavailable", "too_slow", "unsupported"];

    /// The index of the kind in [`KINDS`](Self::KINDS).
    #[cfg(feature = "metrics")]
    pub(crate) fn kind_index(&self) -> usize {
        self.kind as usize
    }

    /// Whether the store had no room for the key.
    pub fn is_full(&self) -> bool {
        self.kind == ErrorKind::Full
    }

    /// Whether the request must not pass uncounted. This is so if the store had no room for a limit with
    /// [`WhenFull::Refuse`](crate::limit::WhenFull::Refuse). Layers that are not on trial then answer 503, whatever they
    /// do when a store fails.
    pub fn must_refuse(&self) -> bool {
        self.must_refuse
    }

    /// Whether the store did not answer in time.
    pub fn is_too_slow(&self) -> bool {
        self.kind == ErrorKind::TooSlow
    }

    /// Whether the store cannot keep the limit.
    pub fn is_unsupported(&self) -> bool {
        self.kind == ErrorKind::Unsupported
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ErrorKind::Full => "the store has no room for another key",
            ErrorKind::Unavailable => "the store is not available",
            ErrorKind::TooSlow => "the store did not answer in time",
            ErrorKind::Unsupported => "the store cannot keep this limit",
        })
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// What happens to a request when the store cannot decide about it.
///
/// The default is to admit: a limiter should not be the reason for an outage. The failure is counted and logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreError {
    /// It passes without being counted. The default.
    #[default]
    Admit,
    /// It is answered with `503 Service Unavailable`, never with 429. A layer on trial, and limits that are all on
    /// trial, admit it nevertheless.
    Refuse,
}
