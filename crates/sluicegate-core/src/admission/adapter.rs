//! What every adapter obeys, and leaves behind.

/// Left in the extensions of requests that exceed a limit under
/// [`Rejection::degrade`](crate::Rejection::degrade): the handler should serve less.
#[derive(Debug, Clone, Copy)]
pub struct Degraded;

/// Left in the extensions of a response by which a limit refused the request, so that a layer further
/// out gives its own charge back.
#[derive(Debug, Clone, Copy)]
pub struct Refused;
