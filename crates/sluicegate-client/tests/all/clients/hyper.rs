use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use sluicegate_client::AdaptiveThrottleLayer;
use tower::{Service, ServiceBuilder, ServiceExt};

use super::*;

#[tokio::test]
async fn the_layers_wrap_the_client_of_hyper_util() {
    let answers = ["503 Service Unavailable", "200 OK", "429 Too Many Requests\r\nretry-after: 60"];
    let server = Server::start(&answers).await;
    let mut client = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .layer(AdaptiveThrottleLayer::new())
        .layer(obey())
        .service(Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>());
    let get = || Request::get(&server.url).body(Full::new(Bytes::new())).unwrap();
    assert_eq!(client.ready().await.unwrap().call(get()).await.unwrap().status(), 200);
    // The wait is longer than the layer retries for.
    assert_eq!(client.ready().await.unwrap().call(get()).await.unwrap().status(), 429);
    let error = client.ready().await.unwrap().call(get()).await.unwrap_err();
    assert!(is_refused(&*error), "{error}");
    assert_eq!(server.seen().len(), 3);
}
