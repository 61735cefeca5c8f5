//! nginx and its `auth_request`.

use crate::proxies::client::{get, get_as, get_disguised, send};
use crate::proxies::program::Program;
use crate::proxies::scene::Scene;

async fn start(scene: &Scene) -> Program {
    // A busy machine may take longer than the guide allows.
    start_with(scene, |server| server.replace("timeout 1s", "timeout 10s")).await
}

/// Starts nginx with a file that is changed before.
pub(crate) async fn start_with(scene: &Scene, change: impl Fn(&str) -> String) -> Program {
    Program::start("nginx", |command, directory, address| {
        let server = change(&scene.configuration("nginx.conf", address));
        // What the main file of a package has, without anything outside of the directory.
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths = paths.map(|name| format!("{name}_temp_path {name};\n")).concat();
        let whole = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr;\n\
             events {{}}\nhttp {{\naccess_log off;\n{paths}{server}\n}}\n"
        );
        std::fs::write(directory.join("nginx.conf"), whole).expect("a file");
        command.arg("-p").arg(directory).args(["-c", "nginx.conf", "-e", "stderr"]);
    })
    .await
}

#[tokio::test]
async fn nginx_answers_429_with_its_fields_once_a_client_has_spent_its_limit() {
    let scene = Scene::new().await;
    let nginx = start(&scene).await;
    for left in [1, 0] {
        let answer = get(nginx.address, "/users?page=2").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"));
        assert_eq!(answer.field("ratelimit"), format!("\"api\";r={left};t=30"));
        assert_eq!(answer.field("ratelimit-policy"), "\"api\";q=2;w=60");
        assert_eq!(answer.field("retry-after"), "");
    }
    let refused = get(nginx.address, "/users?page=2").await;
    assert_eq!((refused.status, refused.field("retry-after")), (429, "30"), "{}", nginx.log());
    assert_eq!(refused.field("ratelimit"), "\"api\";r=0;t=30");
    assert_eq!(refused.field("ratelimit-policy"), "\"api\";q=2;w=60");
    assert_eq!(refused.field("cache-control"), "no-store");
    assert_eq!(refused.body, "Too many requests\n");
    assert_eq!(scene.served(), 2);
    // Another client is another key.
    assert_eq!(get_as(2, nginx.address, "/", &[]).await.status, 200);
    // A refusal is no error of nginx.
    assert!(!nginx.log().contains("[error]"), "{}", nginx.log());
}

#[tokio::test]
async fn a_403_of_the_application_behind_nginx_stays_a_403() {
    let scene = Scene::new().await;
    let nginx = start(&scene).await;
    let answer = get(nginx.address, "/forbidden").await;
    assert_eq!((answer.status, answer.body.as_str()), (403, "the application's own"));
    assert_eq!(answer.field("ratelimit"), "\"api\";r=1;t=30");
    assert_eq!(answer.field("retry-after"), "");
}

#[tokio::test]
async fn nginx_answers_503_while_the_store_is_away() {
    let scene = Scene::with_store_away().await;
    let nginx = start(&scene).await;
    for _ in 0..3 {
        assert_eq!(get(nginx.address, "/").await.status, 503);
    }
    assert_eq!(scene.served(), 0);
}

#[tokio::test]
async fn a_client_of_nginx_gains_nothing_by_fields_of_its_own() {
    let scene = Scene::new().await;
    let nginx = start(&scene).await;
    for status in [200, 200, 429] {
        assert_eq!(get(nginx.address, "/").await.status, status);
    }
    let statuses = get_disguised(nginx.address, "/").await;
    assert!(statuses.iter().all(|status| *status == 429), "{statuses:?}");
    // Nor by asking itself, or by pretending that it was refused.
    assert_eq!(get_as(2, nginx.address, "/sluicegate", &[]).await.status, 404);
    assert_eq!(get_as(2, nginx.address, "/", &[("sluicegate-status", "429")]).await.status, 200);
    assert_eq!(scene.served(), 3);
}

#[tokio::test]
async fn a_request_of_many_fields_passes_nginx() {
    let scene = Scene::new().await;
    let nginx = start(&scene).await;
    let many: String = (0..200).map(|at| format!("x-{at}: 1\r\n")).collect();
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{many}\r\n");
    // The application of these tests takes 100, and says so.
    assert_eq!(send(nginx.address, &head).await, 431, "{}", nginx.log());
    assert!(!nginx.log().contains("[error]"), "{}", nginx.log());
    let many: String = (0..95).map(|at| format!("x-{at}: 1\r\n")).collect();
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{many}\r\n");
    assert_eq!(send(nginx.address, &head).await, 200, "{}", nginx.log());
}

#[tokio::test]
async fn nginx_counts_requests_of_every_form() {
    let scene = Scene::new().await;
    let nginx = start(&scene).await;
    let mut statuses = Vec::new();
    for head in [
        // No valid target. nginx passes it, it counts, and the application answers 400.
        "GET /?<\"> HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
        // Without a host, as HTTP/1.0 allows.
        "GET / HTTP/1.0\r\n",
        "GET http://other.example/a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n",
        "GET /a%20b?c={d} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
    ] {
        statuses.push(send(nginx.address, &format!("{head}\r\n")).await);
    }
    assert_eq!(statuses, [400, 200, 429, 429, 429], "{}", nginx.log());
}
