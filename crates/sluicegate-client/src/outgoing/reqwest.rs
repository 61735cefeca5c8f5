use std::time::Duration;

use ::http::{Extensions, HeaderMap, Method, StatusCode};
use ::reqwest::{Request, Response, Url};

use super::context::Context;
use super::request::Target;
use super::request::{OutgoingRequest, OutgoingResponse, ReplayRequest};

impl OutgoingRequest for Request {
    fn method(&self) -> &Method {
        self.method()
    }

    fn target(&self) -> Target<'_> {
        target(self.url())
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.headers_mut()
    }

    fn extensions(&self) -> Option<&Extensions> {
        None
    }

    fn extensions_mut(&mut self) -> Option<&mut Extensions> {
        None
    }

    fn timeout(&self) -> Option<Duration> {
        let own = self.timeout().copied();
        let of_scope = Context::current().and_then(|context| context.left());
        own.into_iter().chain(of_scope).min()
    }

    fn shorten_timeout(&mut self, left: Duration) {
        if let Some(timeout) = self.timeout_mut() {
            *timeout = left.min(*timeout);
        }
    }
}

impl ReplayRequest for Request {
    fn try_clone(&self) -> Option<Self> {
        self.try_clone()
    }
}

/// reqwest follows redirects itself, so a response may come from another origin than its request was sent to.
impl OutgoingResponse for Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn source(&self) -> Option<Target<'_>> {
        Some(target(self.url()))
    }
}

fn target(url: &Url) -> Target<'_> {
    Target {
        scheme: url.scheme(),
        authority: url.authority(),
        path: url.path(),
        query: url.query(),
    }
}
