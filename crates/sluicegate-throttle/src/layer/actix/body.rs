use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use pin_project_lite::pin_project;

use crate::layer::in_service::InService;
use crate::layer::in_service::Piece;

pin_project! {
    /// The body of a response that has passed a throttle in actix-web: the unchanged body of the inner service.
    ///
    /// The time in which it is polled belongs to the cost of the request, which ends when the last chunk has been taken,
    /// when the body fails, and when it is dropped because the client has gone. An upgraded connection is the body of
    /// its response.
    #[derive(Debug)]
    pub struct ActixBody<B> {
        // Dropped first: it may report what it cost.
        #[pin]
        inner: B,
        in_service: InService,
    }
}

impl<B> ActixBody<B> {
    pub(super) fn new(inner: B, in_service: InService) -> Self {
        Self { inner, in_service }
    }

    /// The body of the service inside.
    pub const fn inner(&self) -> &B {
        &self.inner
    }
}

impl<B: MessageBody> MessageBody for ActixBody<B> {
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
        this.in_service.poll_body(|| {
            this.inner.as_mut().poll_next(cx).map(|chunk| {
                let piece = match &chunk {
                    None => Piece::End,
                    Some(Err(_)) => Piece::Failure,
                    Some(Ok(_)) if is_empty(this.inner.size()) => Piece::End,
                    Some(Ok(chunk)) => Piece::Data(chunk.len() as u64),
                };
                (chunk, piece)
            })
        })
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let Self { inner, mut in_service } = self;
        match inner.try_into_bytes() {
            Ok(bytes) => {
                in_service.took(Piece::End);
                Ok(bytes)
            }
            Err(inner) => Err(Self { inner, in_service }),
        }
    }
}

pub(super) const fn is_empty(size: BodySize) -> bool {
    matches!(size, BodySize::None | BodySize::Sized(0))
}
