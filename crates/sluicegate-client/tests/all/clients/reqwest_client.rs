use reqwest::{Body, Client, Method, Request};
use sluicegate_client::outgoing::Context;
use sluicegate_client::{AdaptiveThrottleLayer, PropagateLayer};
use tower::{Service, ServiceBuilder, ServiceExt};

use super::*;

fn get(url: &str) -> Request {
    Request::new(Method::GET, url.parse().unwrap())
}

#[tokio::test]
async fn a_server_that_asks_to_wait_gets_no_request() {
    let server = Server::start(&["429 Too Many Requests\r\nretry-after: 60"]).await;
    let mut client = ServiceBuilder::new().layer(obey()).service(Client::new());
    assert_eq!(client.ready().await.unwrap().call(get(&server.url)).await.unwrap().status(), 429);
    let error = client.ready().await.unwrap().call(get(&server.url)).await.unwrap_err();
    assert!(is_refused(&*error), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn what_the_last_origin_says_after_a_redirect_is_for_that_origin() {
    let busy = Server::start(&["429 Too Many Requests\r\nretry-after: 60"]).await;
    let to_busy = format!("302 Found\r\nlocation: {}/", busy.url);
    let first = Server::start(&[&to_busy]).await;
    let mut client = ServiceBuilder::new().layer(obey()).service(Client::new());
    assert_eq!(client.ready().await.unwrap().call(get(&first.url)).await.unwrap().status(), 429);
    // The first origin did nothing wrong.
    assert!(client.ready().await.unwrap().call(get(&first.url)).await.is_ok());
    let error = client.ready().await.unwrap().call(get(&busy.url)).await.unwrap_err();
    assert!(is_refused(&*error), "{error}");
}

#[tokio::test]
async fn layers_that_retry_do_not_multiply_although_reqwest_hides_extensions() {
    let server = Server::start(&["503 Service Unavailable"]).await;
    let mut client = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .layer(obey())
        .layer(retry().build().unwrap())
        .service(Client::new());
    client.ready().await.unwrap().call(get(&server.url)).await.unwrap();
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_connection_that_breaks_is_tried_again() {
    let server = Server::start(&["", "", "200 OK"]).await;
    let mut client = ServiceBuilder::new().layer(retry().build().unwrap()).service(Client::new());
    assert_eq!(client.ready().await.unwrap().call(get(&server.url)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_body_of_reqwest_that_can_be_read_once_is_sent_once() {
    let server = Server::start(&["503 Service Unavailable"]).await;
    let mut client = ServiceBuilder::new().layer(retry().build().unwrap()).service(Client::new());
    let mut send = async |body: Body| {
        let mut request = Request::new(Method::PUT, server.url.parse().unwrap());
        *request.body_mut() = Some(body);
        client.ready().await.unwrap().call(request).await.unwrap();
        server.seen().len()
    };
    assert_eq!(send(Body::wrap(http_body_util::Full::new(bytes::Bytes::from("once")))).await, 1);
    assert_eq!(send(Body::from("as often as need be")).await, 1 + 3);
}

#[tokio::test]
async fn the_context_of_a_scope_is_handed_on() {
    let server = Server::start(&["200 OK"]).await;
    let mut client = ServiceBuilder::new()
        .layer(AdaptiveThrottleLayer::new())
        .layer(PropagateLayer::new())
        .service(Client::new());
    let context = Context::new().criticality("SHEDDABLE").timeout(Duration::from_secs(60));
    let sent = async { client.ready().await.unwrap().call(get(&server.url)).await.unwrap() };
    context.scope(sent).await;
    let head = &server.seen()[0];
    assert!(head.contains("x-criticality: sheddable"), "{head}");
    assert!(head.contains("x-deadline-ms: "), "{head}");
}
