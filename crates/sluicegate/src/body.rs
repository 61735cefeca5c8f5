//! The body of a response, which keeps what its request holds.
//!
//! It has three variants: the body of the inner service alone, that body with what is held, and bytes for a
//! refusal. Only the second one allocates, a box that hides the types of the rule and the store. In axum,
//! which has one type for all bodies, only that variant becomes a boxed body.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::{Piece, poll_guarded};

use crate::http_limit::{Guard, HttpLines};

pin_project! {
    /// The body of a response that has passed a layer: that of the inner service, or one that the layer made for a
    /// refusal.
    ///
    /// It behaves like the inner body: the same length, end, frames, errors and trailers. If the request holds
    /// something ([`Limit::concurrent`](crate::Limit::concurrent), [`InFlight`](crate::condition::InFlight)), it is
    /// released when the last frame has been taken, when the body fails, and when it is dropped. A body without
    /// anything held allocates nothing.
    ///
    /// ```
    /// use http::Response;
    /// use sluicegate::response::Body;
    ///
    /// // What a closure for refusals may return, whatever the service's own body is.
    /// let response: Response<Body<Vec<u8>>> = Response::new(Body::from_bytes("slow down\n"));
    /// # let _ = response;
    /// ```
    pub struct Body<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B> {
        Inner { #[pin] body: B },
        // The body is dropped first, because it may report its cost.
        Holding { #[pin] body: B, guard: Option<Guard> },
        Own { bytes: Bytes },
    }
}

impl<B> Body<B> {
    /// The body `inner`, as it is.
    #[inline]
    pub const fn new(inner: B) -> Self {
        Self { kind: Kind::Inner { body: inner } }
    }

    /// A body of `bytes`, sent in one frame.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Own { bytes: bytes.into() } }
    }

    /// `body`, and what is kept until it has ended: see
    /// [`HttpLimit::close`](crate::adapter::HttpLimit::close).
    #[inline]
    pub fn guarded(body: B, guard: Option<Guard>) -> Self {
        match guard {
            None => Self::new(body),
            guard => Self { kind: Kind::Holding { body, guard } },
        }
    }

    /// Whether something is held until this has ended.
    pub const fn is_holding(&self) -> bool {
        matches!(&self.kind, Kind::Holding { guard: Some(_), .. })
    }

    /// The body of the service inside; `None` where the layer made the response.
    pub const fn inner(&self) -> Option<&B> {
        match &self.kind {
            Kind::Inner { body } | Kind::Holding { body, .. } => Some(body),
            Kind::Own { .. } => None,
        }
    }

    /// The body of the inner service, or the layer's own bytes. What is held is released.
    ///
    /// # Errors
    ///
    /// The bytes, where the layer made the response.
    pub fn into_inner(self) -> Result<B, Bytes> {
        match self.kind {
            Kind::Inner { body } | Kind::Holding { body, .. } => Ok(body),
            Kind::Own { bytes } => Err(bytes),
        }
    }
}

impl<B> From<B> for Body<B> {
    fn from(inner: B) -> Self {
        Self::new(inner)
    }
}

/// A body without any bytes.
impl<B> Default for Body<B> {
    fn default() -> Self {
        Self::from_bytes(Bytes::new())
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
            KindProj::Inner { body } => body.poll_frame(cx),
            KindProj::Holding { mut body, guard } => poll_guarded(
                &mut body,
                guard,
                |body| body.as_mut().poll_frame(cx),
                |body, frame, guard| {
                    let is_over =
                        frame.data_ref().is_some_and(|data| guard.passed(Piece::Data(data)));
                    if let Some(trailers) = frame.trailers_ref() {
                        guard.saw_trailers(&|| Box::new(HttpLines(trailers.clone())));
                    }
                    // Servers ask for nothing after trailers.
                    let is_last = frame.is_trailers() || body.is_end_stream();
                    is_over || is_last && guard.passed(Piece::End)
                },
            ),
            KindProj::Own { bytes } => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body } | Kind::Holding { body, .. } => body.is_end_stream(),
            Kind::Own { bytes } => bytes.is_empty(),
        }
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body } | Kind::Holding { body, .. } => body.size_hint(),
            Kind::Own { bytes } => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for Body<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Inner { body } => f.debug_tuple("Body").field(body).finish(),
            Kind::Holding { body, .. } => f.debug_tuple("Body(holding)").field(body).finish(),
            Kind::Own { bytes } => f.debug_tuple("Body(own)").field(bytes).finish(),
        }
    }
}
