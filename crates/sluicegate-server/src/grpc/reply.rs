use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;

use super::message::PREFIX;

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// A message with its prefix.
pub(crate) fn framed(message: &impl prost::Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = Vec::with_capacity(PREFIX + length);
    framed.push(0);
    framed.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    // A vector has room for everything.
    let _ = message.encode(&mut framed);
    framed.into()
}

/// The body of an answer: the message, then the trailers.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(super) message: Option<Bytes>,
    pub(super) trailers: Option<HeaderMap>,
}

impl Reply {
    pub(super) fn of(message: Bytes) -> Self {
        let mut trailers = HeaderMap::with_capacity(1);
        trailers.insert(GRPC_STATUS, OK);
        Self { message: Some(message), trailers: Some(trailers) }
    }
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.message.take().map(Frame::data);
        Poll::Ready(message.or_else(|| self.trailers.take().map(Frame::trailers)).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.trailers.is_none()
    }
}
