use std::collections::VecDeque;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code::OverLimit;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::UInt64Value;
use http_body::Frame;
use prost::Message as _;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Code;

use super::GRPC_STATUS;
use super::PREFIX;
use super::*;
use crate::policies::Policies;
use crate::rls::Rls;
use crate::service::Service as Limits;

/// A body whose frames come one by one. It may not end.
struct Frames {
    frames: VecDeque<Bytes>,
    ends: bool,
}

impl Frames {
    fn new(frames: impl Into<VecDeque<Bytes>>) -> Self {
        Self { frames: frames.into(), ends: true }
    }
}

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.frames.pop_front() {
            None if !self.ends => Poll::Pending,
            data => Poll::Ready(data.map(|data| Ok(Frame::data(data)))),
        }
    }
}

fn service() -> Limits {
    Limits::builder(Policies::new()).build().unwrap()
}

const PATH: &str = Rls::PATH;

fn call(frames: &[&[u8]]) -> Request<Frames> {
    let frames: VecDeque<_> = frames.iter().map(|frame| Bytes::copy_from_slice(frame)).collect();
    let call = Request::post(PATH).header(header::CONTENT_TYPE, GRPC);
    call.body(Frames::new(frames)).unwrap()
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

/// The `grpc-status` of the answer to these frames, and its message.
async fn answered(frames: &[&[u8]]) -> (Code, Option<RateLimitResponse>) {
    let (head, mut reply) = answer(Rls::new(&service()), call(frames)).await.into_parts();
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
    let service = service();
    let timed = || service.dashboard().latency().counts().iter().sum::<u64>();
    for _ in 0..128 {
        answer(Rls::new(&service), call(&[&framed(&question())])).await;
    }
    // One call in 64 is.
    assert_eq!(timed(), 2);
}

/// The names and the values are those of `ratelimitToMetadata` in Envoy's service, at its commit f2fb157.
#[tokio::test]
async fn an_answer_says_what_it_is_about_if_it_is_told_to() {
    let mut own = RateLimitDescriptor {
        entries: vec![Entry { key: "user".into(), value: "a".into() }],
        hits_addend: Some(UInt64Value { value: 2 }),
        ..RateLimitDescriptor::default()
    };
    own.limit = Some(RateLimitOverride { requests_per_unit: 9, unit: 2 });
    let descriptors = vec![own, RateLimitDescriptor::default()];
    let message = RateLimitRequest { domain: "edge".into(), descriptors, hits_addend: 5 };
    let asked = async |service: &Limits| {
        let call = call(&[&framed(&message.encode_to_vec())]);
        let message = answer(Rls::new(service), call).await.into_body().message.take();
        let message = message.expect("an answer");
        RateLimitResponse::decode(&message[PREFIX..]).unwrap().dynamic_metadata
    };
    assert_eq!(asked(&service()).await, None);
    let told = Limits::builder(Policies::new()).metadata(true).build().unwrap();
    let metadata = asked(&told).await.expect("metadata").fields;
    let text = format!("{metadata:?}").replace("kind: Some", "");
    assert_eq!(metadata.len(), 3);
    for part in [
        "StringValue(\"edge\")",
        "StringValue(\"user=a\")",
        "StringValue(\"requests_per_unit:9 unit:MINUTE\")",
        "NumberValue(2.0)",
        "NumberValue(5.0)",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part} in {text}");
    }
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_an_invalid_argument() {
    assert_eq!(answered(&[&framed(&[])]).await, (Code::InvalidArgument, None));
}

/// The code of the answer to a message of this length.
async fn to_length(frames: &[&[u8]]) -> Option<i32> {
    let (code, message) = answered(frames).await;
    assert_eq!(code, Code::Ok);
    message.map(|message| message.overall_code)
}

#[tokio::test]
async fn a_message_that_is_too_long_is_over_its_limit_before_it_is_read() {
    let over = i32::from(OverLimit);
    assert_eq!(to_length(&[&[0, 0xff, 0xff, 0xff, 0xff, 1]]).await, Some(over));
    let length = u32::try_from(LARGEST + 1).unwrap().to_be_bytes();
    assert_eq!(to_length(&[&[&[0][..], &length].concat()]).await, Some(over));
    let longest = vec![0; LARGEST];
    assert_eq!(answered(&[&framed(&longest)]).await.0, Code::Internal, "fits, and is no message");
}

/// As many calls as there is room for begin a message of the largest length with this many of its bytes, and send no more.
/// Returns how long another call waits beside them, and what becomes of them.
async fn beside_stalled_calls(bytes: usize) -> (Duration, JoinSet<Code>) {
    let room: &Semaphore = Box::leak(Box::new(Semaphore::new(ROOM)));
    let mut begin = framed(&vec![0; LARGEST]);
    begin.truncate(PREFIX + bytes);
    let mut calls = JoinSet::new();
    for _ in 0..ROOM / LARGEST {
        let body = Frames { ends: false, ..Frames::new([begin.clone().into()]) };
        calls.spawn(async { Message::read(body, room).await.expect_err("no end").code() });
    }
    for _ in 0..calls.len() {
        tokio::task::yield_now().await;
    }
    let began = Instant::now();
    let long = Frames::new([framed(&vec![0; SHORT + 1]).into()]);
    let read = timeout(Duration::from_secs(600), Message::read(long, room)).await;
    assert!(read.expect("room").expect("a whole message").is_some());
    (began.elapsed(), calls)
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_only_announced_take_no_room_from_others() {
    for bytes in [0, 1_000, SHORT - PREFIX] {
        let (waited, _calls) = beside_stalled_calls(bytes).await;
        assert_eq!(waited, Duration::ZERO, "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_messages_that_do_not_go_on_give_their_room_to_others() {
    let (waited, mut calls) = beside_stalled_calls(LARGEST - 1).await;
    assert!(waited < REST + Duration::from_millis(100), "{waited:?}");
    while let Some(code) = calls.join_next().await {
        assert_eq!(code.unwrap(), Code::DeadlineExceeded);
    }
}

/// A piece is copied once, and not with each piece that follows.
#[tokio::test]
async fn a_long_message_in_the_smallest_pieces_takes_a_time_that_its_length_bounds() {
    let descriptors = vec![
        RateLimitDescriptor {
            entries: vec![Entry { key: "user".into(), value: "a".repeat(100_000) }],
            ..RateLimitDescriptor::default()
        };
        4
    ];
    let message = RateLimitRequest { domain: "edge".into(), descriptors, hits_addend: 0 };
    let whole = framed(&message.encode_to_vec());
    let pieces: Vec<_> = whole.chunks(1).collect();
    let began = std::time::Instant::now();
    assert_eq!(to_length(&pieces).await, Some(1));
    // 400,000 pieces: copied each time, 80 GB.
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn what_is_not_plain_is_left_to_the_routes() {
    let plain = || call(&[]);
    assert!(is_plain::<Rls, _>(&plain()));
    let not = |change: fn(&mut Request<Frames>)| {
        let mut call = plain();
        change(&mut call);
        assert!(!is_plain::<Rls, _>(&call), "{call:?}", call = call.map(|_| ()));
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
