use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

use super::in_service::InService;
use super::in_service::Piece;

pin_project! {
    /// The body of a response that has passed a throttle: the body of the inner service, or that of a refusal.
    ///
    /// The time in which it is polled belongs to the cost of the request, which ends when the last frame has been taken,
    /// when the body fails, and when it is dropped because the client has gone.
    #[derive(Debug)]
    pub struct Body<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = KindProj]
    enum Kind<B> {
        Inner { #[pin] body: B, in_service: InService },
        Own { bytes: Bytes },
    }
}

impl<B> Body<B> {
    /// A body of `bytes`, sent in one frame.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Own { bytes: bytes.into() } }
    }

    /// The body of the service inside; `None` where the request was shed.
    pub const fn inner(&self) -> Option<&B> {
        match &self.kind {
            Kind::Inner { body, .. } => Some(body),
            Kind::Own { .. } => None,
        }
    }

    pub(super) fn new(body: B, in_service: InService) -> Self {
        Self { kind: Kind::Inner { body, in_service } }
    }
}

impl<B: http_body::Body<Data = Bytes>> http_body::Body for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProj::Inner { mut body, in_service } => in_service.poll_body(|| {
                body.as_mut().poll_frame(cx).map(|frame| {
                    let piece = match &frame {
                        None => Piece::End,
                        Some(Err(_)) => Piece::Failure,
                        // Servers ask for nothing after trailers.
                        Some(Ok(frame)) if frame.is_trailers() || body.is_end_stream() => {
                            Piece::End
                        }
                        Some(Ok(frame)) => {
                            Piece::Data(frame.data_ref().map_or(0, |data| data.len() as u64))
                        }
                    };
                    (frame, piece)
                })
            }),
            KindProj::Own { bytes } => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body, .. } => body.is_end_stream(),
            Kind::Own { bytes } => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body, .. } => body.size_hint(),
            Kind::Own { bytes } => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}
