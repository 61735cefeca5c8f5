use std::time::Duration;

use ::http::{Extensions, HeaderMap, Method, Request, Response, StatusCode};

use super::context::Context;
use super::grpc;
use super::request::{OutgoingRequest, OutgoingResponse, ReplayRequest};
use super::target::Target;

impl<B> OutgoingRequest for Request<B> {
    fn method(&self) -> &Method {
        self.method()
    }

    fn target(&self) -> Target<'_> {
        self.uri().into()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.headers_mut()
    }

    fn extensions(&self) -> Option<&Extensions> {
        Some(self.extensions())
    }

    fn extensions_mut(&mut self) -> Option<&mut Extensions> {
        Some(self.extensions_mut())
    }

    fn timeout(&self) -> Option<Duration> {
        let own = match self.extensions().get::<Context>() {
            Some(context) => context.left(),
            None => Context::current().and_then(|context| context.left()),
        };
        own.into_iter().chain(grpc::stated(self.headers())).min()
    }
}

impl<B: Clone> ReplayRequest for Request<B> {
    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<B> OutgoingResponse for Response<B> {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}
