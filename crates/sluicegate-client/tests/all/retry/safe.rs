use std::convert::Infallible;

use http::Method;
use sluicegate::key::Path;
use sluicegate_client::outgoing::{OutgoingRequest, ReplayRequest, Target};
use tower::service_fn;

use super::*;

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again() {
    for failure in
        [BUSY, BROKEN, Answer::Status(429, None), Answer::Status(200, Some(("grpc-status", "14")))]
    {
        let server = Server::answering(&[failure.clone(), failure]);
        assert_eq!(send(&server, |settings| settings, get()).await, Ok(200));
        assert_eq!(server.seen(), 3);
    }
}

#[tokio::test]
async fn an_answer_is_not_asked_for_again() {
    for status in [200, 301, 400, 401, 403, 404, 409, 500, 501] {
        let server = Server::always(Answer::Status(status, None));
        assert_eq!(send(&server, |settings| settings, get()).await, Ok(status));
        assert_eq!(server.seen(), 1, "{status}");
    }
}

#[tokio::test]
async fn after_the_last_attempt_the_caller_gets_the_failure() {
    let server = Server::always(BROKEN);
    assert_eq!(send(&server, |settings| settings, get()).await, Err("connection reset".into()));
    assert_eq!(server.seen(), 3);
    let server = Server::always(BUSY);
    assert_eq!(send(&server, |settings| settings.attempts(1), get()).await, Ok(503));
    assert_eq!(server.seen(), 1);
}

#[tokio::test]
async fn what_may_do_harm_is_sent_once() {
    for method in
        [Method::POST, Method::PATCH, Method::CONNECT, Method::from_bytes(b"BREW").unwrap()]
    {
        for failure in [BUSY, BROKEN] {
            let server = Server::always(failure);
            let request = Request::builder()
                .method(&method)
                .uri("https://api.example/")
                .body(String::new())
                .unwrap();
            let _ = send(&server, |settings| settings, request).await;
            assert_eq!(server.seen(), 1, "{method}");
        }
    }
}

#[tokio::test]
async fn a_post_is_repeated_with_a_key_or_where_the_program_says_so() {
    let post = || Request::post("https://api.example/pay");
    let server = Server::answering(&[BUSY]);
    let keyed = post().header("idempotency-key", "8e03978e").body(String::new()).unwrap();
    assert_eq!(send(&server, |settings| settings, keyed).await, Ok(200));

    let told = |settings: RetryBuilder| settings.repeat_when(Path.matches("/pay"));
    let server = Server::answering(&[BUSY]);
    assert_eq!(send(&server, told, post().body(String::new()).unwrap()).await, Ok(200));
    let other = Request::post("https://api.example/other").body(String::new()).unwrap();
    let server = Server::answering(&[BUSY]);
    assert_eq!(send(&server, told, other).await, Ok(503));
}

/// A request of a client that hides the extensions, as reqwest does. Its body may be a stream, which is read once.
struct Hidden {
    request: Request<String>,
    is_stream: bool,
}

impl OutgoingRequest for Hidden {
    fn method(&self) -> &Method {
        self.request.method()
    }

    fn target(&self) -> Target<'_> {
        self.request.uri().into()
    }

    fn headers(&self) -> &http::HeaderMap {
        self.request.headers()
    }

    fn headers_mut(&mut self) -> &mut http::HeaderMap {
        self.request.headers_mut()
    }

    fn extensions(&self) -> Option<&http::Extensions> {
        None
    }

    fn extensions_mut(&mut self) -> Option<&mut http::Extensions> {
        None
    }
}

impl ReplayRequest for Hidden {
    fn try_clone(&self) -> Option<Self> {
        let request = self.request.clone();
        (!self.is_stream).then_some(Self { request, is_stream: false })
    }
}

#[tokio::test]
async fn a_body_that_can_be_read_once_is_sent_once() {
    let server = Server::always(BUSY);
    let inner = server.clone();
    let mut service = RetryLayer::new().layer(service_fn(move |request: Hidden| {
        let mut inner = inner.clone();
        async move { inner.call(request.request).await }
    }));
    let request = Request::put("https://api.example/").body(String::new()).unwrap();
    let request = Hidden { request, is_stream: true };
    assert_eq!(service.ready().await.unwrap().call(request).await.unwrap().status(), 503);
    assert_eq!(server.seen(), 1);
}

#[tokio::test]
async fn layers_on_top_of_one_another_do_not_multiply() {
    let server = Server::always(BUSY);
    let fast = || RetryLayer::builder().backoff(Duration::from_micros(1), Duration::from_micros(1));
    let inner = fast().build().unwrap().layer(server.clone());
    // A task in between.
    let between = tower::buffer::Buffer::new(inner, 8);
    let mut outer = fast().build().unwrap().layer(between);
    outer.ready().await.unwrap().call(get()).await.unwrap();
    assert_eq!(server.seen(), 3);
}

#[tokio::test]
async fn requests_that_do_not_show_extensions_do_not_multiply_either() {
    let server = Server::always(BUSY);
    let seen = server.clone();
    let unseen = service_fn(move |request: Hidden| {
        let mut server = seen.clone();
        async move { server.call(request.request).await }
    });
    let fast = || RetryLayer::builder().backoff(Duration::from_micros(1), Duration::from_micros(1));
    let mut outer = fast().build().unwrap().layer(fast().build().unwrap().layer(unseen));
    outer.ready().await.unwrap().call(Hidden { request: get(), is_stream: false }).await.unwrap();
    assert_eq!(server.seen(), 3);
}

#[tokio::test]
async fn a_request_that_this_program_held_back_is_not_tried_again() {
    let calls = Arc::new(Mutex::new(0));
    let counted = calls.clone();
    let mut service = RetryLayer::new().layer(service_fn(move |_: Request<String>| {
        *counted.lock().unwrap() += 1;
        async { Err::<Response<()>, _>(sluicegate_client::Refused::new("enough", None)) }
    }));
    service.ready().await.unwrap().call(get()).await.unwrap_err();
    assert_eq!(*calls.lock().unwrap(), 1);
}

#[test]
fn settings_that_make_no_sense_fail_when_the_layer_is_made() {
    let (none, milli) = (Duration::ZERO, Duration::from_millis(1));
    for (builder, named) in [
        (RetryLayer::builder().attempts(0), "attempts"),
        (RetryLayer::builder().attempts(u32::MAX), "attempts"),
        (RetryLayer::builder().backoff(none, milli), "back-off"),
        (RetryLayer::builder().backoff(milli, none), "back-off"),
        (RetryLayer::builder().longest_wait(Duration::MAX), "Retry-After"),
    ] {
        let sentence = builder.build().unwrap_err().to_string();
        assert!(sentence.contains(named), "{sentence}");
    }
}

#[tokio::test]
async fn a_service_that_never_fails_is_called_once() {
    let mut service = RetryLayer::new()
        .layer(service_fn(|_: Request<String>| async { Ok::<_, Infallible>(Response::new(())) }));
    assert!(service.ready().await.unwrap().call(get()).await.is_ok());
}
