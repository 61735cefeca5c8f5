use sluicegate::Header;

use super::*;

#[tokio::test]
async fn a_server_is_obeyed_for_its_own_origin_alone() {
    let client = Client::with(|builder| builder.wait(Duration::ZERO));
    client.refused_for("http://a/", 60).await;
    refusal(client.send("http://a:80/other").await.unwrap());
    for other in ["https://a/", "http://a:8080/", "http://b/"] {
        assert!(client.send(other).await.unwrap().is_ok(), "{other}");
    }
}

#[tokio::test]
async fn a_key_of_the_program_tells_accounts_apart() {
    let client = Client::with(|builder| builder.wait(Duration::ZERO).by(Header("x-api-key")));
    let send = async |key: Option<&str>| {
        let mut request = Request::get("http://a/");
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        client.obey.clone().ready().await?.call(request.body(()).unwrap()).await
    };
    client.server.answer(429, &[("retry-after", "60")]);
    assert_eq!(send(Some("alice")).await.unwrap().status(), 429);
    refusal(send(Some("alice")).await);
    assert!(send(Some("bob")).await.is_ok());
    assert!(send(None).await.is_ok());
}

#[tokio::test]
async fn the_table_keeps_its_bound_and_what_holds_requests_back_longest() {
    let clock = ManualClock::new();
    let server = Server::default();
    let layer =
        ObeyLayer::builder().servers(64).wait(Duration::ZERO).clock(&clock).build().unwrap();
    let mut obey = layer.layer(server.clone());
    let mut send =
        async |uri: String| obey.ready().await?.call(Request::get(uri).body(()).unwrap()).await;
    server.answer(429, &[("retry-after", "3000")]);
    send("http://busy/".into()).await.unwrap();
    for number in 0..2_000 {
        server.answer(429, &[("retry-after", "1")]);
        send(format!("http://host-{number}/")).await.unwrap();
        assert!(layer.servers() <= 64, "{}", layer.servers());
    }
    refusal(send("http://busy/".into()).await);
}
