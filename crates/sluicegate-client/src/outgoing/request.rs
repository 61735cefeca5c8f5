use std::time::Duration;

use ::http::{Extensions, HeaderMap, Method, StatusCode};

use super::grpc;
use super::target::Target;

/// A request that the layers can send on.
pub trait OutgoingRequest {
    /// The method.
    fn method(&self) -> &Method;

    /// Where it goes.
    fn target(&self) -> Target<'_>;

    /// The header.
    fn headers(&self) -> &HeaderMap;

    /// The header, to add a field.
    fn headers_mut(&mut self) -> &mut HeaderMap;

    /// What the program has attached to the request; `None` where the client does not let layers see it, as reqwest.
    fn extensions(&self) -> Option<&Extensions>;

    /// What the program has attached to the request, to add to it.
    fn extensions_mut(&mut self) -> Option<&mut Extensions>;

    /// How long the caller waits for the response, if it says so.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Tells the client below that the caller waits for `left` from now on, if the request states a time. Layers that send a
    /// request again call this, because the stated time began with the first attempt.
    fn shorten_timeout(&mut self, left: Duration) {
        grpc::shorten(self.headers_mut(), left);
    }
}

/// A request that can be sent a second time.
pub trait ReplayRequest: OutgoingRequest + Sized {
    /// A copy; `None` if the body can be read only once.
    fn try_clone(&self) -> Option<Self>;
}

/// The head of a response.
pub trait OutgoingResponse {
    /// The status.
    fn status(&self) -> StatusCode;

    /// The header.
    fn headers(&self) -> &HeaderMap;

    /// Where the response comes from, if the client has followed redirects; `None` where the client does not say.
    fn source(&self) -> Option<Target<'_>> {
        None
    }
}
