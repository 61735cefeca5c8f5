use std::fmt;

use pin_project_lite::pin_project;

use crate::answer::PassingUsage;

pin_project! {
    /// The body of a response, whose usage a [`UsageReader`](crate::UsageReader) reads as it passes. It behaves like the body
    /// inside.
    pub struct WatchedBody<B> {
        #[pin]
        body: B,
        usage: PassingUsage,
    }
}

impl<B> WatchedBody<B> {
    pub(crate) const fn new(body: B, usage: PassingUsage) -> Self {
        Self { body, usage }
    }
}

/// A body whose usage nobody reads.
impl<B> From<B> for WatchedBody<B> {
    fn from(body: B) -> Self {
        Self::new(body, PassingUsage::nothing())
    }
}

#[cfg(feature = "tower")]
impl<B: http_body::Body<Data = bytes::Bytes>> http_body::Body for WatchedBody<B> {
    type Data = bytes::Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, B::Error>>> {
        let mut this = self.project();
        let frame = std::task::ready!(this.body.as_mut().poll_frame(cx));
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
        std::task::Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(feature = "actix")]
impl<B: actix_web::body::MessageBody> actix_web::body::MessageBody for WatchedBody<B> {
    type Error = B::Error;

    fn size(&self) -> actix_web::body::BodySize {
        self.body.size()
    }

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<actix_web::web::Bytes, B::Error>>> {
        let mut this = self.project();
        let chunk = std::task::ready!(this.body.as_mut().poll_next(cx));
        match &chunk {
            None => this.usage.end(),
            Some(Err(_)) => this.usage.fail(),
            Some(Ok(bytes)) => {
                this.usage.read(bytes);
                // A body that is in memory whole has no chunk behind this one.
                if this.body.size().is_eof() {
                    this.usage.end();
                }
            }
        }
        std::task::Poll::Ready(chunk)
    }

    fn try_into_bytes(self) -> Result<actix_web::web::Bytes, Self> {
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
