//! What every adapter obeys, and leaves behind.

/// What happens to a request when the store cannot decide about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnStoreError {
    /// It passes, uncounted. The default.
    #[default]
    Admit,
    /// It is answered with `503 Service Unavailable`; never with 429.
    Refuse,
}

/// Left in the extensions of requests that exceed a limit under
/// [`Rejection::degrade`](crate::Rejection::degrade): the handler should serve less.
#[derive(Debug, Clone, Copy)]
pub struct Degraded;

/// Left in the extensions of a response by which a limit refused the request, so that a layer further
/// out gives its own charge back.
#[derive(Debug, Clone, Copy)]
pub struct Refused;
