use std::error::Error;
use std::fmt;

use crate::message::{Release, Request, Response};

/// Carries requests of a [`LeaseClient`](super::LeaseClient) to a server.
///
/// A request that takes too long is dropped, and another one is sent.
pub trait Transport: Send + 'static {
    /// Sends a request and waits for the answer.
    fn ask(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<Response, TransportError>> + Send + 'static;

    /// Tells the server what the client has stopped to use.
    fn release(
        &mut self,
        release: Release,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static;
}

/// Why a request was not answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransportError {
    /// The server is not the master, and the transport knows now who is: the next request goes there, at once.
    Redirected,
    /// The answer did not come in time.
    Late,
    /// The server cannot be reached, does not know the master, or refuses the request.
    Failed(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redirected => f.write_str("another server is the master"),
            Self::Late => f.write_str("the request for capacity was not answered in time"),
            Self::Failed(_) => f.write_str("the request for capacity was not answered"),
        }
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Redirected | Self::Late => None,
            Self::Failed(error) => Some(&**error),
        }
    }
}
