use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use sluicegate::response::WatchedBody;
use tokio::sync::OwnedSemaphorePermit;

pin_project! {
    /// The body of a response: that of the application, or one of the proxy itself.
    #[project = ResponseBodyProj]
    pub(crate) enum ResponseBody {
        // The place among the requests of the application is kept until the body has ended.
        Upstream { #[pin] body: WatchedBody<Incoming>, place: Option<OwnedSemaphorePermit> },
        Own { #[pin] body: Full<Bytes> },
    }
}

impl ResponseBody {
    pub(crate) fn upstream(body: WatchedBody<Incoming>, place: OwnedSemaphorePermit) -> Self {
        let place = (!body.is_end_stream()).then_some(place);
        Self::Upstream { body, place }
    }

    pub(crate) fn own(body: Full<Bytes>) -> Self {
        Self::Own { body }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.project() {
            ResponseBodyProj::Upstream { body, place } => {
                let frame = body.poll_frame(cx);
                if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
                    *place = None;
                }
                frame
            }
            ResponseBodyProj::Own { body } => {
                body.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(|no| match no {})))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Upstream { body, .. } => body.is_end_stream(),
            Self::Own { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Upstream { body, .. } => body.size_hint(),
            Self::Own { body } => body.size_hint(),
        }
    }
}
