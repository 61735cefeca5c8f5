//! A rule that redirects, behind every proxy.

use crate::proxies::client::get;
use crate::proxies::program::Program;
use crate::proxies::scene::Scene;
use crate::proxies::{caddy, envoy, haproxy, nginx};

/// Two requests are served, and the third is sent elsewhere.
async fn assert_redirects(proxy: &Program, scene: &Scene) {
    let before = scene.served();
    for _ in 0..2 {
        assert_eq!(get(proxy.address, "/").await.status, 200, "{}", proxy.log());
    }
    let sent = get(proxy.address, "/").await;
    let whither = (sent.status, sent.field("location"));
    assert_eq!(whither, (303, "https://busy.example/"), "{}", proxy.log());
    assert_eq!(scene.served() - before, 2);
}

#[tokio::test]
async fn nginx_sends_clients_elsewhere() {
    let scene = Scene::redirecting().await;
    assert_redirects(&nginx::start_with(&scene, str::to_owned).await, &scene).await;
}

#[tokio::test]
async fn caddy_sends_clients_elsewhere() {
    let scene = Scene::redirecting().await;
    assert_redirects(&caddy::start_with(&scene, "Caddyfile").await, &scene).await;
}

/// Also if requests are to pass while the server is away: it is not.
#[tokio::test]
async fn haproxy_sends_clients_elsewhere() {
    let scene = Scene::redirecting().await;
    let change = |text: &str| {
        haproxy::patient(text).replace("pass_while_away = false", "pass_while_away = true")
    };
    assert_redirects(&haproxy::start_with(&scene, change).await, &scene).await;
}

#[tokio::test]
async fn envoy_sends_clients_elsewhere() {
    for file in [envoy::OVER_GRPC, envoy::OVER_HTTP] {
        let scene = Scene::redirecting().await;
        assert_redirects(&envoy::start_with(&scene, file, envoy::patient).await, &scene).await;
    }
}
