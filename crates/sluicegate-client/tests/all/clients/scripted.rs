use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::{Channel, Server};
use tonic_health::pb::HealthCheckResponse;
use tower::Service;

/// A server of gRPC that ends each call as the next of its answers says, and serves it from then on.
#[derive(Clone, Default)]
pub(crate) struct Scripted(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    seen: Vec<Seen>,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) type Fields = &'static [(&'static str, &'static str)];

#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// A status in the header, and nothing more.
    Header(Fields),
    /// The head of a response, and a status in trailers.
    Trailers(Fields),
    /// A message, and a status in trailers.
    MessageAndTrailers(Fields),
    /// No answer.
    Never,
}

pub(crate) const UNAVAILABLE: Fields = &[("grpc-status", "14")];

impl Scripted {
    /// Serves over TCP.
    pub(crate) async fn start(answers: &[Answer]) -> (Self, Channel) {
        let service = Self::default();
        service.0.lock().unwrap().answers.extend(answers);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Server::builder().add_service(service.clone());
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        (service, Channel::from_shared(url).unwrap().connect().await.unwrap())
    }

    /// The calls that came.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.lock().unwrap().seen.clone()
    }
}

impl NamedService for Scripted {
    const NAME: &'static str = "grpc.health.v1.Health";
}

impl Service<Request<Body>> for Scripted {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let state = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let answer = {
                let mut state = state.lock().unwrap();
                state.seen.push(Seen { headers: head.headers, body });
                state.answers.pop_front()
            };
            let mut response = Response::builder().header("content-type", "application/grpc");
            let frames = match answer.unwrap_or(Answer::MessageAndTrailers(&[("grpc-status", "0")]))
            {
                Answer::Never => std::future::pending().await,
                Answer::Header(header) => {
                    response.headers_mut().unwrap().extend(fields(header));
                    vec![]
                }
                Answer::Trailers(trailers) => vec![http_body::Frame::trailers(fields(trailers))],
                Answer::MessageAndTrailers(trailers) => {
                    let message = http_body::Frame::data(frame(&HealthCheckResponse::default()));
                    vec![message, http_body::Frame::trailers(fields(trailers))]
                }
            };
            let frames = tokio_stream::iter(frames.into_iter().map(Ok::<_, Infallible>));
            Ok(response.body(Body::new(StreamBody::new(frames))).unwrap())
        })
    }
}

fn fields(fields: Fields) -> HeaderMap {
    let field = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    fields.iter().map(field).collect()
}

fn frame(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(message.encoded_len() as u32);
    bytes.extend_from_slice(&message.encode_to_vec());
    bytes.freeze()
}
