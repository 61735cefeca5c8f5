//! A server that lies: no answer makes a client wait for ever, hurry, or stumble.

use std::sync::{Arc, Mutex};

use reqwest::{Client, Method, Request};
use tower::{Service, ServiceBuilder, ServiceExt};

use super::server::STALL;
use super::*;

/// What the second request does after this answer to the first: how long it has to wait, at least.
async fn wait_after(answer: &str) -> Option<Duration> {
    let server = Server::start(&[answer, "200 OK"]).await;
    let mut client = ServiceBuilder::new().layer(obey()).service(Client::new());
    let get = || Request::new(Method::GET, server.url.parse().unwrap());
    client.ready().await.unwrap().call(get()).await.unwrap();
    match client.ready().await.unwrap().call(get()).await {
        Ok(_) => None,
        Err(error) => Refused::find(&*error).unwrap().retry_after(),
    }
}

#[tokio::test]
async fn absurd_demands_are_capped() {
    let hour = Duration::from_secs(3_600);
    for answer in [
        "429 No\r\nretry-after: 1000000000",
        "503 No\r\nretry-after: 99999999999999999999999999",
        "429 No\r\nretry-after: Fri, 31 Dec 9999 23:59:59 GMT",
        "200 OK\r\nratelimit: \"a\";r=0;t=999999999999999",
        "200 OK\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 9999999999999999",
    ] {
        let wait = wait_after(answer).await.unwrap();
        assert!(wait >= hour && wait <= hour * 11 / 10, "{answer}: {wait:?}");
    }
}

#[tokio::test]
async fn dates_in_the_past_are_now() {
    for answer in [
        "200 OK\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1700000000",
        "200 OK\r\nx-ratelimit-remaining: 3\r\nx-ratelimit-reset: 1700000000",
    ] {
        let answer = &format!("{answer}\r\ndate: Wed, 01 Jan 2025 00:00:00 GMT");
        assert!(
            wait_after(answer).await.is_none_or(|wait| wait < Duration::from_millis(1)),
            "{answer}"
        );
    }
    let past = "429 No\r\ndate: Wed, 01 Jan 2025 00:00:00 GMT\r\nretry-after: Tue, 31 Dec 2024 00:00:00 GMT";
    assert_eq!(wait_after(past).await, None);
}

#[tokio::test]
async fn nonsense_is_ignored() {
    for answer in [
        "200 OK\r\nratelimit: nonsense\r\nratelimit-policy: ((((",
        "200 OK\r\nretry-after: 60",
        "200 OK\r\nratelimit: \"a\";r=-5;t=60",
        "200 OK\r\nx-ratelimit-remaining: -1\r\nx-ratelimit-reset: NaN",
        "200 OK\r\nage: 30\r\nratelimit: \"a\";r=0;t=60",
        "503 No\r\nretry-after: soon",
    ] {
        assert_eq!(wait_after(answer).await, None, "{answer}");
    }
}

#[tokio::test]
async fn a_server_that_redirects_without_end_is_not_asked_again() {
    let server = Server::start(&["302 Found\r\nlocation: /again"]).await;
    let mut client = ServiceBuilder::new().layer(retry().build().unwrap()).service(Client::new());
    let get = Request::new(Method::GET, server.url.parse().unwrap());
    client.ready().await.unwrap().call(get).await.unwrap_err();
    // The first request, and ten redirects.
    assert_eq!(server.seen().len(), 11);
    let server = Server::start(&["302 Found\r\nlocation: /again"]).await;
    let client = reqwest_middleware::ClientBuilder::new(Client::new())
        .with(sluicegate_client::outgoing::AsMiddleware(retry().build().unwrap()))
        .with(sluicegate_client::outgoing::AsMiddleware(obey()))
        .build();
    client.get(&server.url).send().await.unwrap_err();
    assert_eq!(server.seen().len(), 11);
}

#[tokio::test]
async fn a_server_that_stalls_gets_no_second_request_after_the_time_of_the_caller() {
    let server = Server::start(&[STALL]).await;
    let mut client = ServiceBuilder::new().layer(retry().build().unwrap()).service(Client::new());
    let mut get = Request::new(Method::GET, server.url.parse().unwrap());
    *get.timeout_mut() = Some(Duration::from_secs(2));
    client.ready().await.unwrap().call(get).await.unwrap_err();
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_second_attempt_has_what_is_left_of_the_time() {
    let server = Server::start(&["503 No\r\nretry-after: 1", STALL]).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = told.clone();
    let mut client = ServiceBuilder::new()
        .layer(retry().build().unwrap())
        .map_request(move |request: Request| {
            tells.lock().unwrap().push(*request.timeout().unwrap());
            request
        })
        .service(Client::new());
    let mut get = Request::new(Method::GET, server.url.parse().unwrap());
    *get.timeout_mut() = Some(Duration::from_secs(4));
    client.ready().await.unwrap().call(get).await.unwrap_err();
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 2);
    assert!(told[1] <= Duration::from_secs(3), "{told:?}");
}
