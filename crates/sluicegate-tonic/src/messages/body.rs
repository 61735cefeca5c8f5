use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use sluicegate::cost::RunningCost;

use super::frames::Frames;

pin_project! {
    /// A body whose messages are counted while it is read.
    pub struct CountedBody<B> {
        #[pin]
        body: B,
        cost: Option<RunningCost>,
        frames: Frames,
    }
}

impl<B> CountedBody<B> {
    pub(super) fn new(body: B, cost: Option<RunningCost>) -> Self {
        Self { body, cost, frames: Frames::default() }
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
        if let (Some(cost), Some(Ok(frame))) = (this.cost, &frame) {
            if let Some(data) = frame.data_ref() {
                cost.add(this.frames.read(data));
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
