use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::run::Upload;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Either;
use sluicegate_config::Live;
use sluicegate_llm::tower::ReadBody;
use tokio::time::{Sleep, sleep};

use crate::proxy::{forwarded, hop};
use crate::run::causes;

/// The body of a request: as it comes, or read before its tokens were counted.
pub(crate) type RequestBody = Either<ComingBody, ReadBody<ComingBody>>;

/// A body whose client has to send the next piece within a time.
pub(crate) struct ComingBody {
    body: Upload,
    time: Duration,
    left: Option<Pin<Box<Sleep>>>,
    live: Live,
}

impl ComingBody {
    pub(crate) fn new(body: Upload, time: Duration, live: Live) -> Self {
        Self { body, time, left: None, live }
    }

    /// Trailers say nothing that only a header may say.
    fn checked(&self, mut frame: Frame<Bytes>) -> Frame<Bytes> {
        if let Some(trailers) = frame.trailers_mut() {
            let policies = self.live.policies();
            hop::strip_trailers(trailers, |name| {
                forwarded::is_vouched(policies.client_header(), name)
            });
        }
        frame
    }
}

impl Body for ComingBody {
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                this.left = None;
                let frame = frame.map(|frame| frame.map_err(ClientError::Broken));
                Poll::Ready(frame.map(|frame| frame.map(|frame| this.checked(frame))))
            }
            Poll::Pending => {
                let time = this.time;
                let left = this.left.get_or_insert_with(|| Box::pin(sleep(time)));
                left.as_mut().poll(cx).map(|()| Some(Err(ClientError::Slow)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The client did not send the body that it announced. The application is not to blame.
#[derive(Debug)]
pub(crate) enum ClientError {
    Broken(Box<dyn Error + Send + Sync>),
    Slow,
}

impl ClientError {
    /// The error of the client among the causes of `error`.
    pub(crate) fn among<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        causes(error).find_map(<dyn Error>::downcast_ref)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => error.fmt(f),
            Self::Slow => f.write_str("the client took too long to send the body of its request"),
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Broken(error) => Some(&**error),
            Self::Slow => None,
        }
    }
}
