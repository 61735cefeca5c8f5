//! Caddy and its `forward_auth`.

use crate::proxies::client::{get, get_as, get_disguised, send};
use crate::proxies::program::{Program, free_address};
use crate::proxies::scene::Scene;

async fn start(scene: &Scene) -> Program {
    // A busy machine may take longer than the guide allows.
    start_changed(scene, "Caddyfile", |site| site.replace("timeout 1s", "timeout 10s")).await
}

/// Starts Caddy with one of the files.
pub(crate) async fn start_with(scene: &Scene, file: &str) -> Program {
    start_changed(scene, file, str::to_owned).await
}

/// Starts Caddy with a file that is changed before.
pub(crate) async fn start_changed(
    scene: &Scene,
    file: &str,
    change: impl Fn(&str) -> String,
) -> Program {
    Program::start("caddy", |command, directory, address| {
        // Of the server that always agrees. Each attempt draws another.
        let agreeing = free_address().port().to_string();
        let site = change(&scene.configuration(file, address).replace("8001", &agreeing));
        // Without its admin port, which is a fixed one.
        let whole = format!("{{\n\tadmin off\n}}\n\n{site}");
        std::fs::write(directory.join("Caddyfile"), whole).expect("a file");
        command.env("XDG_DATA_HOME", directory).env("XDG_CONFIG_HOME", directory);
        command.args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"]);
    })
    .await
}

#[tokio::test]
async fn caddy_passes_on_the_429_once_a_client_has_spent_its_limit() {
    let scene = Scene::new().await;
    let caddy = start(&scene).await;
    for _ in 0..2 {
        let answer = get(caddy.address, "/users?page=2").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"), "{}", caddy.log());
    }
    let refused = get(caddy.address, "/users?page=2").await;
    assert_eq!((refused.status, refused.field("retry-after")), (429, "30"));
    assert_eq!(refused.field("ratelimit"), "\"api\";r=0;t=30");
    assert_eq!(refused.field("ratelimit-policy"), "\"api\";q=2;w=60");
    assert_eq!(refused.field("content-type"), "application/problem+json");
    assert!(refused.body.contains("quota-exceeded"), "{}", refused.body);
    assert_eq!(scene.served(), 2);
    // Another client is another key.
    assert_eq!(get_as(2, caddy.address, "/", &[]).await.status, 200);
}

#[tokio::test]
async fn a_403_of_the_application_behind_caddy_stays_a_403() {
    let scene = Scene::new().await;
    let caddy = start(&scene).await;
    let answer = get(caddy.address, "/forbidden").await;
    assert_eq!((answer.status, answer.body.as_str()), (403, "the application's own"));
}

#[tokio::test]
async fn caddy_answers_503_while_the_store_is_away() {
    let scene = Scene::with_store_away().await;
    let caddy = start(&scene).await;
    for _ in 0..3 {
        assert_eq!(get(caddy.address, "/").await.status, 503);
    }
    assert_eq!(scene.served(), 0);
}

#[tokio::test]
async fn a_client_of_caddy_gains_nothing_by_fields_of_its_own() {
    let scene = Scene::new().await;
    let caddy = start(&scene).await;
    for status in [200, 200, 429] {
        assert_eq!(get(caddy.address, "/").await.status, status);
    }
    let statuses = get_disguised(caddy.address, "/").await;
    assert!(statuses.iter().all(|status| *status == 429), "{statuses:?}");
    assert_eq!(scene.served(), 2);
}

#[tokio::test]
async fn caddy_counts_requests_of_every_form() {
    let scene = Scene::new().await;
    let caddy = start(&scene).await;
    let mut statuses = Vec::new();
    for head in [
        // No valid target, which Caddy passes.
        "GET /?<\"> HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
        "GET / HTTP/1.0\r\nhost: x\r\n",
        "GET http://other.example/a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n",
        "GET /a%20b?c={d} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
    ] {
        statuses.push(send(caddy.address, &format!("{head}\r\n")).await);
    }
    assert_eq!(statuses, [400, 200, 200, 429, 429], "{}", caddy.log());
}
