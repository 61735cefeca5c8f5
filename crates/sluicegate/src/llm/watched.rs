use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::PassingUsage;

pin_project! {
    /// The body of a response, whose usage a [`UsageReader`](crate::cost::llm::UsageReader) reads as it passes. It behaves like the body inside.
    pub struct WatchedBody<B> {
        #[pin]
        body: B,
        usage: PassingUsage,
    }
}

impl<B> WatchedBody<B> {
    pub(super) const fn new(body: B, usage: PassingUsage) -> Self {
        Self { body, usage }
    }
}

/// A body whose usage nobody reads.
impl<B> From<B> for WatchedBody<B> {
    fn from(body: B) -> Self {
        Self::new(body, PassingUsage::nothing())
    }
}

impl<B: Body<Data = Bytes>> Body for WatchedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(cx));
        match &frame {
            None => this.usage.end(),
            Some(Err(_)) => this.usage.fail(),
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    this.usage.read(data);
                }
                if frame.is_trailers() || this.body.is_end_stream() {
                    this.usage.end();
                }
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

impl<B: fmt::Debug> fmt::Debug for WatchedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchedBody").field(&self.body).finish()
    }
}
