use reqwest::Client;
use reqwest_middleware::{ClientBuilder, Error};
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
