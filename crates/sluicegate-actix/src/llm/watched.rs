use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
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

impl<B: MessageBody> MessageBody for WatchedBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, B::Error>>> {
        let mut this = self.project();
        let chunk = ready!(this.body.as_mut().poll_next(cx));
        match &chunk {
            None => this.usage.end(),
            Some(Err(_)) => this.usage.fail(),
            Some(Ok(bytes)) => {
                this.usage.read(bytes);
                // A body that is in memory whole has no chunk behind this one.
                if matches!(this.body.size(), BodySize::None | BodySize::Sized(0)) {
                    this.usage.end();
                }
            }
        }
        Poll::Ready(chunk)
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let Self { body, mut usage } = self;
        match body.try_into_bytes() {
            Ok(bytes) => {
                usage.read(&bytes);
                usage.end();
                Ok(bytes)
            }
            Err(body) => Err(Self { body, usage }),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for WatchedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchedBody").field(&self.body).finish()
    }
}
