//! Calls of `ShouldRateLimit`, without what tonic needs for streams and compression.
//!
//! Envoy waits for the answer with every request, so this is the path that has to be quick: tonic boxes the body twice,
//! copies each message, and reserves 16 KiB for each call. Calls that are not plain are left to tonic.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use http_body::Frame;
use prost::Message as _;
use tonic::Status;

use super::answer::answer;
use super::grpc::{LARGEST, deadline, status};
use super::message;
use super::wire::Message;
use crate::service::Service;

const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// A message begins with whether it is compressed, one byte, and its length, four bytes.
const PREFIX: usize = 5;

/// Answers plain calls.
#[derive(Debug, Clone)]
pub(crate) struct Unary(Service);

impl Unary {
    pub(crate) fn new(service: &Service) -> Self {
        Self(service.clone())
    }

    /// Whether the call is one of `ShouldRateLimit` in gRPC, without compression.
    pub(crate) fn takes<B>(&self, call: &Request<B>) -> bool {
        call.uri().path() == PATH
            && call.method() == Method::POST
            && call.headers().get(header::CONTENT_TYPE) == Some(&GRPC)
            && !call.headers().contains_key(ENCODING)
    }

    /// Answers a call that it [takes](Self::takes).
    pub(crate) async fn answer<B>(self, call: Request<B>) -> Response<Reply>
    where
        B: HttpBody<Data = Bytes>,
    {
        let (head, body) = call.into_parts();
        let answered = match whole(body).await {
            Ok(bytes) => self.decide(&head.headers, &bytes).await,
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

    /// The message of the answer, with its prefix.
    async fn decide(&self, fields: &HeaderMap, bytes: &[u8]) -> Result<Bytes, Status> {
        let message = Message::read(message_in(bytes)?)
            .map_err(|malformed| Status::internal(malformed.to_string()))?;
        let request = message::request(message).map_err(Status::invalid_argument)?;
        let answered = answer(&self.0, &request, deadline(&self.0, fields)).await;
        let answer = answered.map_err(|failure| status(&failure))?;
        let message = message::response(&request, &answer, self.0.fields());
        let length = message.encoded_len();
        let mut framed = Vec::with_capacity(PREFIX + length);
        framed.push(0);
        framed.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        // A vector has room for everything.
        let _ = message.encode(&mut framed);
        Ok(framed.into())
    }
}

/// All data of a body, if that is not more than one message may be.
async fn whole<B: HttpBody<Data = Bytes>>(body: B) -> Result<Bytes, Status> {
    let mut body = pin!(body);
    let mut all = Bytes::new();
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| Status::cancelled("the call was given up"))?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > PREFIX + LARGEST {
            return Err(too_long());
        }
        // A message nearly always comes as a whole.
        all = if all.is_empty() { data } else { [all, data].concat().into() };
        if body.is_end_stream() {
            break;
        }
    }
    Ok(all)
}

/// The only message.
fn message_in(bytes: &[u8]) -> Result<&[u8], Status> {
    let Some((prefix, message)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(Status::internal("there is no message"));
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(Status::internal(
            "a message is compressed in a call that has no grpc-encoding",
        ));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > LARGEST {
        return Err(too_long());
    }
    if message.len() != length {
        return Err(Status::internal("a call is not one whole message"));
    }
    Ok(message)
}

fn too_long() -> Status {
    Status::out_of_range(format!("the message is too large: expected at most {LARGEST} bytes"))
}

/// The body of an answer: the message, then the trailers.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    message: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Reply {
    fn of(message: Bytes) -> Self {
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
    use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
    use tonic::Code;

    use super::*;
    use crate::policies::Policies;

    /// A body whose frames come one by one.
    struct Frames(VecDeque<Bytes>);

    impl HttpBody for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(data))))
        }
    }

    fn unary() -> Unary {
        Unary::new(&Service::builder(Policies::new()).build().unwrap())
    }

    fn call(frames: &[&[u8]]) -> Request<Frames> {
        let frames = frames.iter().map(|frame| Bytes::copy_from_slice(frame)).collect();
        let call = Request::post(PATH).header(header::CONTENT_TYPE, GRPC);
        call.body(Frames(frames)).unwrap()
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
    }

    /// The `grpc-status` of the answer to these frames, and its message.
    async fn answered(frames: &[&[u8]]) -> (Code, Option<RateLimitResponse>) {
        let (head, mut reply) = unary().answer(call(frames)).await.into_parts();
        assert_eq!(head.status, 200);
        assert_eq!(head.headers.get(header::CONTENT_TYPE), Some(&GRPC));
        let message = reply.message.take().map(|message| {
            assert_eq!(message[..PREFIX], framed(&message[PREFIX..])[..PREFIX]);
            RateLimitResponse::decode(&message[PREFIX..]).unwrap()
        });
        let status = reply.trailers.as_ref().unwrap_or(&head.headers).get(GRPC_STATUS).unwrap();
        (Code::from_bytes(status.as_bytes()), message)
    }

    fn question() -> Vec<u8> {
        let descriptors = vec![RateLimitDescriptor::default()];
        RateLimitRequest { domain: "edge".into(), descriptors, hits_addend: 0 }.encode_to_vec()
    }

    #[tokio::test]
    async fn a_message_may_come_in_pieces() {
        let whole = framed(&question());
        let pieces: Vec<_> = whole.chunks(1).collect();
        for frames in [&[&*whole][..], &pieces, &[b"", &whole, b""]] {
            let (code, message) = answered(frames).await;
            assert_eq!((code, message.map(|m| m.overall_code)), (Code::Ok, Some(1)));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_not_one_whole_message_is_refused() {
        let whole = framed(&question());
        let mut compressed = whole.clone();
        compressed[0] = 1;
        for bytes in [
            Vec::new(),
            whole[..4].to_vec(),
            whole[..whole.len() - 1].to_vec(),
            [&*whole, &*whole].concat(),
            compressed,
            framed(&[0xff]),
        ] {
            assert_eq!(answered(&[&bytes]).await, (Code::Internal, None), "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn calls_are_timed_for_the_dashboard() {
        let unary = unary();
        let timed = || unary.0.board().latency().counts().iter().sum::<u64>();
        for _ in 0..128 {
            unary.clone().answer(call(&[&framed(&question())])).await;
        }
        // One call in 64 is.
        assert_eq!(timed(), 2);
    }

    #[tokio::test]
    async fn a_request_that_makes_no_sense_is_an_invalid_argument() {
        assert_eq!(answered(&[&framed(&[])]).await, (Code::InvalidArgument, None));
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_refused_before_it_is_read() {
        let claimed = [0, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(answered(&[&claimed]).await, (Code::OutOfRange, None));
        let piece = vec![0; 16 * 1024];
        let endless: Vec<_> = std::iter::repeat_n(&*piece, 1_000).collect();
        assert_eq!(answered(&endless).await, (Code::OutOfRange, None));
        let longest = vec![0; LARGEST];
        assert_eq!(
            answered(&[&framed(&longest)]).await.0,
            Code::Internal,
            "fits, and is no message"
        );
    }

    #[test]
    fn what_is_not_plain_is_left_to_tonic() {
        let plain = || call(&[]);
        assert!(unary().takes(&plain()));
        let not = |change: fn(&mut Request<Frames>)| {
            let mut call = plain();
            change(&mut call);
            assert!(!unary().takes(&call), "{call:?}", call = call.map(|_| ()));
        };
        not(|call| *call.method_mut() = Method::GET);
        not(|call| {
            *call.uri_mut() = "/envoy.service.ratelimit.v3.RateLimitService/".parse().unwrap();
        });
        not(|call| _ = call.headers_mut().remove(header::CONTENT_TYPE));
        not(|call| {
            let json = HeaderValue::from_static("application/grpc+json");
            call.headers_mut().insert(header::CONTENT_TYPE, json);
        });
        not(|call| _ = call.headers_mut().insert(ENCODING, HeaderValue::from_static("gzip")));
    }
}
