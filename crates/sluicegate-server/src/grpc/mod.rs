//! Unary calls of gRPC, without what tonic needs for streams and compression.
//!
//! Envoy waits for the answer with every request, so this is the path that has to be quick: tonic boxes the body twice,
//! copies each message, and reserves 16 KiB for each call. It also decides about a message only if it can read all of it,
//! and a client can have Envoy send texts that are no UTF-8, and more of them than a server wants to read. Here the bytes of a
//! message are handed over, or that there are too many: the service answers either.

mod message;
mod reply;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::request::Parts;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
};
use axum::response::IntoResponse as _;
use tonic::Status;
use tonic::server::NamedService;
use tower_service::Service;

pub(crate) use self::message::{LARGEST, Received};
pub(crate) use self::reply::{Reply, framed};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Answers the calls of one method.
pub(crate) trait Unary: Clone + Send + Sync + 'static {
    /// The name of the service that the method is the only one of.
    const SERVICE: &'static str;

    /// `/`, the service, `/` and the method.
    const PATH: &'static str;

    /// Answers a call with a message in its [frame](framed).
    fn answer(
        self,
        head: Parts,
        received: Received,
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
    let answered = match Received::read(body).await {
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
