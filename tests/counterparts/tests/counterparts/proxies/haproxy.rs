//! HAProxy, which asks by a script in Lua.

use crate::proxies::client::{get, get_as, get_disguised};
use crate::proxies::program::Program;
use crate::proxies::scene::Scene;

async fn start(scene: &Scene) -> Program {
    start_with(scene, patient).await
}

/// On a busy machine, decisions take longer.
pub(crate) fn patient(text: &str) -> String {
    text.replace("timeout server 1s", "timeout server 10s").replace("= 2000", "= 20000")
}

/// Starts HAProxy with files that are changed before.
pub(crate) async fn start_with(scene: &Scene, change: impl Fn(&str) -> String) -> Program {
    Program::start("haproxy", |command, directory, address| {
        for file in ["haproxy.cfg", "haproxy.lua"] {
            // The name of its socket is one of the whole machine.
            let socket = format!("abns@sluicegate-{}", address.port());
            let text = scene.configuration(file, address).replace("abns@sluicegate", &socket);
            std::fs::write(directory.join(file), change(&text)).expect("a file");
        }
        command.args(["-db", "-f", "haproxy.cfg"]);
    })
    .await
}

#[tokio::test]
async fn haproxy_answers_429_once_a_client_has_spent_its_limit() {
    let scene = Scene::new().await;
    let haproxy = start(&scene).await;
    for _ in 0..2 {
        let answer = get(haproxy.address, "/users?page=2").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"), "{}", haproxy.log());
    }
    let refused = get(haproxy.address, "/users?page=2").await;
    assert_eq!((refused.status, refused.field("retry-after")), (429, "30"));
    assert_eq!(refused.field("ratelimit"), "\"api\";r=0;t=30");
    assert_eq!(refused.field("content-type"), "application/problem+json");
    assert!(refused.body.contains("quota-exceeded"), "{}", refused.body);
    // Another client is another key. The application's own 403 passes.
    assert_eq!(get_as(2, haproxy.address, "/forbidden", &[]).await.body, "the application's own");
    assert_eq!(scene.served(), 3);
}

#[tokio::test]
async fn haproxy_answers_503_while_the_store_is_away() {
    let scene = Scene::with_store_away().await;
    let haproxy = start(&scene).await;
    assert_eq!(get(haproxy.address, "/").await.status, 503);
    assert_eq!(scene.served(), 0);
}

#[tokio::test]
async fn a_client_of_haproxy_gains_nothing_by_fields_of_its_own() {
    let scene = Scene::new().await;
    let haproxy = start(&scene).await;
    for status in [200, 200, 429] {
        assert_eq!(get(haproxy.address, "/").await.status, status);
    }
    let statuses = get_disguised(haproxy.address, "/").await;
    assert!(statuses.iter().all(|status| *status == 429), "{statuses:?}");
    assert_eq!(scene.served(), 2);
}
