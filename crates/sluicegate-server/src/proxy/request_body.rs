use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::run::Upload;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Either;
use sluicegate_config::Live;
use sluicegate_llm::tower::ReadBody;
use tokio::time::{Instant, Sleep, sleep};

use crate::proxy::hop;
use crate::proxy::room::BodyPermit;
use crate::run::causes;

/// The body of a request: as it comes, or read before its tokens were counted.
pub(crate) type RequestBody = Either<ComingBody, BufferedBody>;

/// How many bytes a second a client has to send of a body that is kept, on average: a slow mobile network has more. Otherwise
/// a byte from time to time would keep its room for ever.
const SLOWEST: u64 = 16 * 1024;

/// A body whose client has to send the next piece within a time.
pub(crate) struct ComingBody {
    body: Upload,
    time: Duration,
    left: Option<Pin<Box<Sleep>>>,
    live: Live,
    /// What it takes if it is kept, and when it began.
    kept: Option<(Arc<BodyPermit>, Instant)>,
}

impl ComingBody {
    pub(crate) fn new(body: Upload, time: Duration, live: Live) -> Self {
        Self { body, time, left: None, live, kept: None }
    }

    /// A body that is kept until it has been read. It takes room as it comes.
    pub(crate) fn kept(self, kept: Arc<BodyPermit>) -> Self {
        Self { kept: Some((kept, Instant::now())), ..self }
    }

    /// How long the client has for the next piece.
    fn time(&self) -> Duration {
        match &self.kept {
            None => self.time,
            Some((kept, began)) => {
                let came = Duration::from_secs(kept.bytes() as u64 / SLOWEST);
                self.time.saturating_add(came).saturating_sub(began.elapsed()).min(self.time)
            }
        }
    }

    /// Whether there is room for what has come.
    fn fits(&self, frame: &Frame<Bytes>) -> bool {
        match (&self.kept, frame.data_ref()) {
            (Some((kept, _)), Some(data)) => kept.take(data.len()),
            _ => true,
        }
    }

    /// Trailers say nothing that only a header may say.
    fn checked(&self, mut frame: Frame<Bytes>) -> Frame<Bytes> {
        if let Some(trailers) = frame.trailers_mut() {
            let policies = self.live.policies();
            hop::strip_trailers(trailers, policies.client_header());
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
                Poll::Ready(frame.map(|frame| match frame {
                    Ok(frame) if this.fits(&frame) => Ok(this.checked(frame)),
                    Ok(_) => Err(ClientError::NoRoom),
                    Err(error) => Err(ClientError::Broken(error)),
                }))
            }
            Poll::Pending => {
                let time = this.time();
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

/// A body that was read, with its room. Its bytes keep the room until they are sent, however slowly the application reads.
pub(crate) struct BufferedBody {
    pub(crate) body: ReadBody<ComingBody>,
    pub(crate) kept: Arc<BodyPermit>,
}

/// Bytes in memory, and their room.
struct BufferedBytes {
    bytes: Bytes,
    _kept: Arc<BodyPermit>,
}

impl AsRef<[u8]> for BufferedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for BufferedBody {
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let keep =
            |bytes| Bytes::from_owner(BufferedBytes { bytes, _kept: Arc::clone(&self.kept) });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(keep))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The client did not send the body that it announced, or there is no room to keep it. The application is not to blame.
#[derive(Debug)]
pub(crate) enum ClientError {
    Broken(Box<dyn Error + Send + Sync>),
    Slow,
    NoRoom,
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
            Self::NoRoom => f.write_str("there is no room for the body of a request"),
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Broken(error) => Some(&**error),
            Self::Slow | Self::NoRoom => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use http_body_util::{BodyExt, Empty};
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use sluicegate::key::KeyBuf;
    use sluicegate_config::{Environment, Policies, read_toml};
    use tokio::io::AsyncWriteExt;
    use tokio::sync::mpsc;

    use super::*;
    use crate::proxy::room::Room;

    const TIME: Duration = Duration::from_secs(30);
    const PAUSE: Duration = Duration::from_secs(29);

    /// What becomes of a body of ten such pieces with pauses between them, and when.
    async fn paused(piece: usize, is_kept: bool) -> (Result<usize, ClientError>, Duration) {
        let document = read_toml("rules = []").expect("a document");
        let live = Live::of(Policies::new(&document, &Environment::new()).expect("policies"));
        let (mut client, server) = tokio::io::duplex(piece.max(1024));
        let (read, mut bodies) = mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<Incoming>| {
            let body = Upload::watch(request).0.into_body();
            let body = ComingBody::new(body, TIME, live.clone());
            let room = Room::new(10 * piece);
            let body = if is_kept { body.kept(room.begin(KeyBuf::new())) } else { body };
            let read = read.clone();
            async move {
                let _ = read.send(body.collect().await.map(|body| body.to_bytes().len()));
                Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(server), service));
        let began = Instant::now();
        tokio::spawn(async move {
            let head =
                format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", 10 * piece);
            let _ = client.write_all(head.as_bytes()).await;
            for _ in 0..10 {
                let _ = client.write_all(&vec![b'x'; piece]).await;
                sleep(PAUSE).await;
            }
        });
        (bodies.recv().await.expect("a body"), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_kept_has_to_come_in_time() {
        let (read, time) = paused(1, true).await;
        assert!(matches!(read, Err(ClientError::Slow)), "{read:?}");
        assert!(time >= TIME && time < TIME + Duration::from_secs(1), "{time:?}");
        // As fast as it has to be.
        let piece = PAUSE.as_secs() as usize * SLOWEST as usize;
        assert!(matches!(paused(piece, true).await, (Ok(length), _) if length == 10 * piece));
        // A body that is passed on as it comes takes no room.
        assert!(matches!(paused(1, false).await, (Ok(10), _)));
    }
}
