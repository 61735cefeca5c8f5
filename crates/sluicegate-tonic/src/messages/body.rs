use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use sluicegate::adapter::grpc;

use super::Count;
use super::frames::Frames;
use super::text::Text;

pin_project! {
    /// A body whose messages are counted while it is read.
    pub struct CountedBody<B> {
        #[pin]
        body: B,
        count: Option<Count>,
        messages: Messages,
    }
}

/// The messages of a body, by how it is written.
#[derive(Debug)]
enum Messages {
    Plain(Frames),
    Text(Text),
}

impl Messages {
    /// Those of a body with these header fields.
    fn of(headers: &HeaderMap) -> Self {
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        match content_type.and_then(grpc::response_type) {
            Some(text) if text.contains("-web-text") => Self::Text(Text::default()),
            Some(web) if web.contains("-web") => Self::Plain(Frames::of_web()),
            _ => Self::Plain(Frames::default()),
        }
    }
}

impl<B> CountedBody<B> {
    pub(super) fn new(body: B, count: Option<Count>, headers: &HeaderMap) -> Self {
        Self { body, count, messages: Messages::of(headers) }
    }
}

impl<B: http_body::Body<Data = Bytes>> http_body::Body for CountedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(cx));
        if let (Some(count), Some(Ok(frame))) = (this.count, &frame) {
            if let Some(data) = frame.data_ref() {
                count.add(match this.messages {
                    Messages::Plain(frames) => frames.read(data),
                    Messages::Text(text) => text.read(data),
                });
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: fmt::Debug> fmt::Debug for CountedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CountedBody").field(&self.body).finish()
    }
}
