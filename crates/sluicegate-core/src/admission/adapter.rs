//! Markers that every adapter leaves in requests and responses.

/// Left in the extensions of requests that exceed a limit under
/// [`Rejection::degrade`](crate::Rejection::degrade): the handler should serve less.
#[derive(Debug, Clone, Copy)]
pub struct Degraded;

/// Left in the extensions of a response with which a limit refused the request, so that outer layers give their own
/// charges back.
#[derive(Debug, Clone, Copy)]
pub struct Refused;
