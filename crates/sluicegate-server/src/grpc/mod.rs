//! Unary calls of gRPC, without what tonic needs for streams and compression.
//!
//! Envoy waits for the answer with every request, so this is the path that has to be quick: tonic boxes the body twice,
//! copies each message, and reserves 16 KiB for each call. It also decides about a message only if it can read all of it,
//! and a client can have Envoy send texts that are no UTF-8, and more of them than a server wants to read. Here the bytes of a
//! message are handed over, or that there are too many: the service answers either.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::request::Parts;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
};
use axum::response::IntoResponse as _;
use http_body::Frame;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tonic::server::NamedService;
use tower_service::Service;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Answers the calls of one method.
pub(crate) trait Unary: Clone + Send + Sync + 'static {
    /// The name of the service that the method is the only one of.
    const SERVICE: &'static str;

    /// `/`, the service, `/` and the method.
    const PATH: &'static str;

    /// Answers a call with a message in its [frame](framed). `None` has come of one with more than [`LARGEST`] bytes.
    fn answer(
        self,
        head: Parts,
        received: Option<Message>,
    ) -> impl Future<Output = Result<Bytes, Status>> + Send;
}

/// Whether the call is one of the method, in the usual form.
pub(crate) fn is_plain<U: Unary, B>(call: &Request<B>) -> bool {
    call.uri().path() == U::PATH
        && call.method() == Method::POST
        && call.headers().get(header::CONTENT_TYPE) == Some(&GRPC)
        && !call.headers().contains_key(ENCODING)
}

/// Answers a call of the method.
pub(crate) async fn answer<U: Unary, B>(unary: U, call: Request<B>) -> Response<Reply>
where
    B: HttpBody<Data = Bytes>,
{
    let (head, body) = call.into_parts();
    let answered = match Message::read(body, &LONG).await {
        Ok(received) => unary.answer(head, received).await,
        Err(status) => Err(status),
    };
    match answered {
        Ok(message) => {
            let mut response = Response::new(Reply::of(message));
            response.headers_mut().insert(header::CONTENT_TYPE, GRPC);
            response
        }
        Err(status) => status.into_http::<()>().map(|()| Reply::default()),
    }
}

/// A service of gRPC for the routes of tonic, with all of its calls.
#[derive(Debug, Clone)]
pub(crate) struct Routed<U>(pub(crate) U);

impl<U: Unary> NamedService for Routed<U> {
    const NAME: &'static str = U::SERVICE;
}

impl<U: Unary, B> Service<Request<B>> for Routed<U>
where
    B: HttpBody<Data = Bytes, Error: Send> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Request<B>) -> Self::Future {
        let unary = self.0.clone();
        Box::pin(async move {
            if !is_grpc(call.headers()) {
                return Ok(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response());
            }
            if let Err(status) = supported::<U, B>(&call) {
                return Ok(status.into_http());
            }
            Ok(answer(unary, call).await.map(Body::new))
        })
    }
}

/// `application/grpc`, perhaps with the format of messages or parameters behind it.
fn is_grpc(fields: &HeaderMap) -> bool {
    let kind = fields.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let behind = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    behind.is_some_and(|behind| matches!(behind.first(), None | Some(b'+' | b';')))
}

fn supported<U: Unary, B>(call: &Request<B>) -> Result<(), Status> {
    if call.uri().path() != U::PATH {
        return Err(Status::unimplemented("the service has no such method"));
    }
    match call.headers().get(ENCODING) {
        Some(encoding) if encoding != "identity" => {
            Err(Status::unimplemented("messages are read without compression only"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

/// The largest message that is read, in bytes.
///
/// By default Envoy accepts 60 KiB of header fields, and a request meets 16 limits at most. So all of the fields fit into the
/// descriptor of each limit. To decide about a message of this length takes about a millisecond, because its bytes are
/// compared and hashed; a larger one would make others wait. It is answered too, as one that goes too far.
pub(crate) const LARGEST: usize = 1024 * 1024;

/// Messages of up to this length, in bytes, are read at once.
const SHORT: usize = 64 * 1024;

/// How many bytes of longer messages are in memory at once. Others wait until these are decided.
const ROOM: usize = 64 * LARGEST;

/// How long the rest of a longer message may take once there is room for it, so that a client that does not send it keeps the
/// room from others for no longer. By default Envoy waits 20 or 200 milliseconds for its answer.
const REST: Duration = Duration::from_secs(2);

static LONG: Semaphore = Semaphore::const_new(ROOM);

/// A message begins with whether it is compressed, one byte, and its length, four bytes.
pub(super) const PREFIX: usize = 5;

/// A whole message.
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Bytes,
    _room: Option<SemaphorePermit<'static>>,
}

impl Message {
    /// The message without its prefix.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.slice(PREFIX..)
    }

    /// Reads the only message of a body. `None` if it has more than [`LARGEST`] bytes, which are not read. One that has more
    /// than [`SHORT`] bytes waits for room among the `long` ones.
    ///
    /// # Errors
    ///
    /// The body is not one whole message without compression, or the client does not send the rest of a long one.
    pub(super) async fn read<B: HttpBody<Data = Bytes>>(
        body: B,
        long: &'static Semaphore,
    ) -> Result<Option<Self>, Status> {
        let mut body = pin!(body);
        let mut all = Pieces::default();
        let mut room = None;
        loop {
            let next = poll_fn(|cx| body.as_mut().poll_frame(cx));
            let next = match &room {
                None => next.await,
                Some((_, end)) => timeout_at(*end, next).await.map_err(|_| {
                    Status::deadline_exceeded("the rest of a long message did not come in time")
                })?,
            };
            let Some(frame) = next else { break };
            let frame = frame.map_err(|_| Status::cancelled("the call was given up"))?;
            let Ok(data) = frame.into_data() else { continue };
            all.add(data);
            let Some(length) = length(all.so_far())? else { continue };
            if length > LARGEST {
                return Ok(None);
            }
            if all.so_far().len() > PREFIX + length {
                return Err(Status::internal("a call is not one whole message"));
            }
            // Not before it has come that far: what is only announced costs its client nothing. And for the whole message
            // at once: calls that each have a part of the room, and wait for more, would all wait for each other.
            if length > SHORT && all.so_far().len() > SHORT && room.is_none() {
                // Never closed.
                let permit = long.acquire_many(length as u32).await.ok();
                room = permit.map(|permit| (permit, Instant::now() + REST));
            }
            if body.is_end_stream() {
                break;
            }
        }
        match length(all.so_far())? {
            Some(length) if all.so_far().len() == PREFIX + length => {
                Ok(Some(Self { bytes: all.whole(), _room: room.map(|(permit, _)| permit) }))
            }
            Some(_) => Err(Status::internal("a call is not one whole message")),
            None => Err(Status::internal("there is no message")),
        }
    }
}

/// The length of the message that begins here, once that has come.
fn length(begin: &[u8]) -> Result<Option<usize>, Status> {
    match begin.first_chunk::<PREFIX>() {
        None => Ok(None),
        Some([0, length @ ..]) => Ok(Some(u32::from_be_bytes(*length) as usize)),
        Some(_) => {
            let what = "a message is compressed in a call that has no grpc-encoding";
            Err(Status::internal(what))
        }
    }
}

/// The data of a body. It nearly always comes as a whole, which is not copied. Pieces are copied to the end of those before,
/// however many there are.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    first: Bytes,
    all: Vec<u8>,
}

impl Pieces {
    pub(crate) fn add(&mut self, data: Bytes) {
        if self.so_far().is_empty() {
            self.first = data;
            return;
        }
        if self.all.is_empty() {
            self.all = std::mem::take(&mut self.first).into();
        }
        self.all.extend_from_slice(&data);
    }

    fn so_far(&self) -> &[u8] {
        if self.all.is_empty() { &self.first } else { &self.all }
    }

    pub(crate) fn whole(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.into() }
    }
}

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// A message with its prefix.
pub(crate) fn framed(message: &impl prost::Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = Vec::with_capacity(PREFIX + length);
    framed.push(0);
    framed.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    // A vector has room for everything.
    let _ = message.encode(&mut framed);
    framed.into()
}

/// The body of an answer: the message, then the trailers.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(super) message: Option<Bytes>,
    pub(super) trailers: Option<HeaderMap>,
}

impl Reply {
    pub(super) fn of(message: Bytes) -> Self {
        let mut trailers = HeaderMap::with_capacity(1);
        trailers.insert(GRPC_STATUS, OK);
        Self { message: Some(message), trailers: Some(trailers) }
    }
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.message.take().map(Frame::data);
        Poll::Ready(message.or_else(|| self.trailers.take().map(Frame::trailers)).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.trailers.is_none()
    }
}
