use reqwest::Client;
use reqwest_middleware::{ClientBuilder, Error, Middleware, Next};
use sluicegate_client::outgoing::AsMiddleware;

use super::*;

#[tokio::test]
async fn the_layers_are_middlewares_too() {
    let server = Server::start(&["503 Service Unavailable", "200 OK"]).await;
    let client = ClientBuilder::new(Client::new())
        .with(AsMiddleware(retry().build().unwrap()))
        .with(AsMiddleware(obey()))
        .build();
    assert_eq!(client.get(&server.url).send().await.unwrap().status(), 200);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_refusal_is_an_error_of_the_middleware() {
    let server = Server::start(&["429 Too Many Requests\r\nretry-after: 60"]).await;
    let client = ClientBuilder::new(Client::new()).with(AsMiddleware(obey())).build();
    assert_eq!(client.get(&server.url).send().await.unwrap().status(), 429);
    let error = client.get(&server.url).send().await.unwrap_err();
    let Error::Middleware(error) = error else { panic!("{error}") };
    assert!(error.downcast_ref::<Refused>().unwrap().retry_after().is_some());
}

#[tokio::test]
async fn a_request_that_an_inner_middleware_held_back_is_not_tried_again() {
    let server = Server::start(&["429 Too Many Requests\r\nretry-after: 60"]).await;
    let tries = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let client = ClientBuilder::new(Client::new())
        .with(AsMiddleware(retry().build().unwrap()))
        .with(Counting(tries.clone()))
        .with(AsMiddleware(obey()))
        .build();
    assert_eq!(client.get(&server.url).send().await.unwrap().status(), 429);
    let error = client.get(&server.url).send().await.unwrap_err();
    assert!(is_refused(&error), "{error}");
    assert_eq!(tries.load(std::sync::atomic::Ordering::Relaxed), 2);
}

/// Counts the attempts.
struct Counting(std::sync::Arc<std::sync::atomic::AtomicUsize>);

#[async_trait::async_trait]
impl Middleware for Counting {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut http::Extensions,
        next: Next<'_>,
    ) -> Result<reqwest::Response, Error> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn an_error_of_the_client_stays_one() {
    let server = Server::start(&[""]).await;
    let client = ClientBuilder::new(Client::new()).with(AsMiddleware(obey())).build();
    let error = client.get(&server.url).send().await.unwrap_err();
    assert!(matches!(error, Error::Reqwest(_)), "{error}");
}

#[tokio::test]
async fn middlewares_that_retry_do_not_multiply() {
    let server = Server::start(&["503 Service Unavailable"]).await;
    let client = ClientBuilder::new(Client::new())
        .with(AsMiddleware(retry().build().unwrap()))
        .with(AsMiddleware(retry().build().unwrap()))
        .build();
    client.get(&server.url).send().await.unwrap();
    assert_eq!(server.seen().len(), 3);
}
