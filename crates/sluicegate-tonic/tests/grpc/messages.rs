//! Calls that cost their messages.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use sluicegate_tonic::{Cost, CountMessages, Global, Limit, RateLimitLayer};
use tonic::body::Body;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::servers::still;

/// Six messages an hour.
macro_rules! limited {
    ($count:expr, $handler:expr) => {{
        let rule = Limit::per_hour(6).by(Global).settle_cost(|reply| reply.cost());
        ServiceBuilder::new()
            .layer(RateLimitLayer::new(rule).store(still()))
            .layer($count)
            .service(service_fn($handler))
    }};
}

/// A call that sends this many messages.
fn call(messages: usize) -> Request<Parts> {
    let messages = (0..messages).map(|_| Bytes::from_static(&MESSAGE)).collect();
    let request = Request::post("/a.B/C").header("content-type", "application/grpc");
    request.body(Parts(messages, None)).unwrap()
}

fn is_refused<B>(response: &Response<B>) -> bool {
    response.headers().get("grpc-status").is_some_and(|status| status == "8")
}

#[tokio::test]
async fn what_a_handler_says_a_call_costs_stands_instead_of_its_messages() {
    let mut service = limited!(CountMessages::both(), |_| async {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(Cost(5));
        Ok::<_, Infallible>(response)
    });
    for expected in [false, false, true] {
        let response = service.ready().await.unwrap().call(call(1)).await.unwrap();
        assert_eq!(is_refused(&response), expected);
        read(response.into_body()).await;
    }
}

#[tokio::test]
async fn a_call_without_a_message_counts_as_one() {
    for count in [CountMessages::sent(), CountMessages::received(), CountMessages::both()] {
        let mut service = limited!(count, |_| async {
            let failed = tonic::Status::unauthenticated("a wrong password");
            Ok::<_, Infallible>(failed.into_http::<Body>())
        });
        for number in 1..=7 {
            let response = service.ready().await.unwrap().call(call(0)).await.unwrap();
            assert_eq!(is_refused(&response), number > 6, "{count:?} {number}");
            read(response.into_body()).await;
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_during_its_upload_has_used_what_it_has_sent() {
    for (sent, left) in [(0, 5), (1, 5), (4, 2), (6, 0), (9, 0)] {
        let mut service = limited!(CountMessages::received(), |request: Request<_>| async {
            read(request.into_body()).await;
            // The rest of the upload does not come.
            pending::<()>().await;
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let mut upload = Box::pin(service.ready().await.unwrap().call(call(sent)));
        let polled = poll_fn(|cx| Poll::Ready(upload.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        drop(upload);
        for number in 0..=left {
            let mut next = Box::pin(service.ready().await.unwrap().call(call(1)));
            let polled = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
            let is_admitted = polled.is_pending();
            assert_eq!(is_admitted, number < left, "{sent} {number}");
        }
    }
}

/// A message of three bytes.
pub(crate) const MESSAGE: [u8; 8] = [0, 0, 0, 0, 3, 1, 2, 3];

/// A body of these parts, and trailers.
pub(crate) struct Parts(pub(crate) VecDeque<Bytes>, pub(crate) Option<HeaderMap>);

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.0.pop_front().map(Frame::data);
        Poll::Ready(data.or_else(|| self.1.take().map(Frame::trailers)).map(Ok))
    }
}

/// Reads a body to its end.
pub(crate) async fn read<B: http_body::Body>(body: B) {
    let mut body = pin!(body);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        assert!(frame.is_ok());
    }
}
