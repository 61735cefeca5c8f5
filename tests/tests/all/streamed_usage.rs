//! Answers of language models over real connections: what they used is settled when they have said it, not when their
//! bodies end, which servers and clients do not wait for.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use sluicegate::adapter::{Charge, HttpView};
use sluicegate::key::{Key, KeyBuf};
use sluicegate::store::Store;
use sluicegate::{Global, Limit, ManualClock, Memory, RateLimitLayer};
use sluicegate_llm::{Count, UsageLayer, tokens, used_tokens};
use tokio::io::duplex;
use tower::{Layer, service_fn};

/// Streams these parts, and then waits for ever.
#[derive(Clone)]
struct Unending(VecDeque<Bytes>);

impl http_body::Body for Unending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.pop_front().map_or(Poll::Pending, |part| Poll::Ready(Some(Ok(Frame::data(part)))))
    }
}

const BUDGET: Limit = Limit::per_minute(1_000).named("tokens");

/// An answer of the model: its type, its text, and whether its length is copied from elsewhere.
#[derive(Clone, Copy)]
struct Answer {
    media: &'static str,
    text: &'static str,
    is_declared: bool,
}

const OPENAI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\r\n\r\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":12,\"total_tokens\":21}}\r\n\r\n\
    data: [DONE]\r\n\r\n";
const ANTHROPIC: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9}}}\n\n\
    event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":12}}\n\n\
    event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const RESPONSES: &str = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\n\
    data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":12,\"total_tokens\":21}}}\n\n";
const WHOLE: &str =
    r#"{"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21},"choices":[]}"#;
const SILENT: &str = "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":12}}\n\n";

/// What one answer over a connection of this version is charged, of which 800 tokens are reserved, once the client has
/// all of its bytes.
async fn charged(answer: Answer, piece: usize, is_http2: bool) -> u64 {
    let store = Memory::builder().capacity(100).clock(ManualClock::new()).build();
    let rule =
        BUDGET.by(Global).cost(tokens(Count::All).or(800)).settle_by(used_tokens(Count::All));
    let layer = RateLimitLayer::new(rule).store(store.clone());
    let model = service_fn(move |_: Request<hyper::body::Incoming>| async move {
        let parts = answer.text.as_bytes().chunks(piece).map(Bytes::from_static).collect();
        let mut response = Response::new(Unending(parts));
        response.headers_mut().insert("content-type", answer.media.parse().unwrap());
        if answer.is_declared {
            response.headers_mut().insert("content-length", answer.text.len().into());
        }
        Ok::<_, Infallible>(response)
    });
    let service = TowerToHyperService::new(layer.layer(UsageLayer::new().layer(model)));
    let (client, server) = duplex(1 << 16);
    tokio::spawn(async move {
        let _ = match is_http2 {
            true => {
                let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                http2.serve_connection(TokioIo::new(server), service).await
            }
            false => {
                let http1 = hyper::server::conn::http1::Builder::new();
                http1.serve_connection(TokioIo::new(server), service).await
            }
        };
    });
    let request = Request::post("http://localhost/").header("host", "localhost");
    let request = request.body(Body::empty()).unwrap();
    let client = TokioIo::new(client);
    let response = if is_http2 {
        let http2 = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (mut sender, connection) = http2.handshake(client).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(client).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    };
    let (mut body, mut length) = (response.into_body(), 0);
    while length < answer.text.len() {
        let frame = body.frame().await.unwrap().unwrap();
        length += frame.into_data().map_or(0, |data| data.len());
    }
    let mut key = KeyBuf::new();
    Global.write(&HttpView::<_>::new(&Request::new(())), &mut key).unwrap();
    let charge = Charge::of(BUDGET, key, 1);
    let left = store.peek(&charge).now().unwrap().decision(&charge).remaining();
    1_000 - left.unwrap()
}

#[tokio::test]
async fn an_answer_that_has_said_what_it_used_is_settled_over_any_connection() {
    for is_http2 in [false, true] {
        for (media, text) in [
            ("text/event-stream", OPENAI),
            ("text/event-stream", ANTHROPIC),
            ("text/event-stream", RESPONSES),
            ("application/json", WHOLE),
        ] {
            for is_declared in [false, true] {
                for piece in [1, 50, text.len()] {
                    let answer = Answer { media, text, is_declared };
                    let charged = charged(answer, piece, is_http2).await;
                    assert_eq!(charged, 21, "{media}, {is_declared}, {piece}, {is_http2}");
                }
            }
        }
    }
}

/// Nothing but its length says that this answer has ended.
#[tokio::test]
async fn an_answer_as_long_as_it_declares_is_settled() {
    for is_http2 in [false, true] {
        for (is_declared, used) in [(true, 21), (false, 800)] {
            let answer = Answer { media: "text/event-stream", text: SILENT, is_declared };
            for piece in [1, 50, SILENT.len()] {
                assert_eq!(
                    charged(answer, piece, is_http2).await,
                    used,
                    "{is_declared}, {is_http2}"
                );
            }
        }
    }
}
