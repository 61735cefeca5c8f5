use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use pin_project_lite::pin_project;
use sluicegate_core::adapter::{BodyGuard, Piece, poll_guarded};

pin_project! {
    /// The body of a response that has passed the middleware: that of the service inside, as it is.
    ///
    /// If the request holds something ([`Limit::concurrent`](crate::Limit::concurrent),
    /// [`InFlight`](crate::condition::InFlight)), it is released when the last chunk has been taken, when the body
    /// fails, and when it is dropped. A body without anything held allocates nothing.
    pub struct Body<B> {
        // Dropped first, because it may report its cost.
        #[pin]
        inner: B,
        guard: Option<Box<dyn BodyGuard>>,
    }
}

impl<B> Body<B> {
    /// The body `inner`, as it is.
    #[inline]
    pub const fn new(inner: B) -> Self {
        Self { inner, guard: None }
    }

    /// `inner`, and what is kept until it has ended.
    pub fn guarded(inner: B, guard: Option<Box<dyn BodyGuard>>) -> Self {
        Self { inner, guard }
    }

    /// Whether something is held until this has ended.
    pub const fn is_holding(&self) -> bool {
        self.guard.is_some()
    }

    /// The body of the service inside.
    pub const fn inner(&self) -> &B {
        &self.inner
    }

    /// The body of the inner service. What is held is released.
    pub fn into_inner(self) -> B {
        self.inner
    }
}

impl<B: MessageBody> MessageBody for Body<B> {
    type Error = B::Error;

    #[inline]
    fn size(&self) -> BodySize {
        self.inner.size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, B::Error>>> {
        let mut this = self.project();
        poll_guarded(
            &mut this.inner,
            this.guard,
            |inner| inner.as_mut().poll_next(cx),
            |inner, chunk, guard| {
                let is_last = matches!(inner.size(), BodySize::None | BodySize::Sized(0));
                guard.passed(Piece::Data(chunk)) || is_last && guard.passed(Piece::End)
            },
        )
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let Self { inner, mut guard } = self;
        match inner.try_into_bytes() {
            Ok(bytes) => {
                if let Some(guard) = &mut guard {
                    let _ = guard.passed(Piece::Data(&bytes)) || guard.passed(Piece::End);
                }
                Ok(bytes)
            }
            Err(inner) => Err(Self { inner, guard }),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for Body<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_holding() { "Body(holding)" } else { "Body" };
        f.debug_tuple(name).field(&self.inner).finish()
    }
}
