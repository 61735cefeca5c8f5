//! Envoy: its rate limit filter, and `ext_authz` over gRPC and HTTP.

use sluicegate_server::{Fields, Policies};

use crate::proxies::client::{get, get_as, get_disguised, send};
use crate::proxies::program::Program;
use crate::proxies::scene::Scene;

pub(crate) const RATE_LIMIT: &str = "envoy-rate-limit.yaml";
pub(crate) const OVER_GRPC: &str = "envoy-ext-authz.yaml";
pub(crate) const OVER_HTTP: &str = "envoy-ext-authz-http.yaml";

async fn start(scene: &Scene, file: &str) -> Program {
    start_with(scene, file, patient).await
}

/// On a busy machine, decisions take longer.
pub(crate) fn patient(text: &str) -> String {
    text.replace("timeout: 0.25s", "timeout: 10s")
}

/// Starts Envoy with a file that is changed before.
pub(crate) async fn start_with(
    scene: &Scene,
    file: &str,
    change: impl Fn(&str) -> String,
) -> Program {
    Program::start("envoy", |command, directory, address| {
        let text = scene.configuration(file, address);
        std::fs::write(directory.join("envoy.yaml"), change(&text)).expect("a file");
        // Without memory that it shares with other Envoys of this machine.
        command.args(["-c", "envoy.yaml", "--concurrency", "1", "--use-dynamic-base-id"]);
    })
    .await
}

/// Two requests a minute for each address and each key, by a file of Envoy's service.
async fn scene_of_descriptors() -> Scene {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ratelimit.yaml");
    let text = "domain: edge\ndescriptors:\n\
        - key: remote_address\n  rate_limit: { unit: minute, requests_per_unit: 2, name: address }\n\
        - key: api_key\n  rate_limit: { unit: minute, requests_per_unit: 1, name: key }\n";
    std::fs::write(&file, text).expect("a file");
    let policies = || Policies::new().envoy(&file).unwrap_or_else(|error| panic!("{error}"));
    Scene::with(policies, |service| service.fields(Fields::Draft)).await
}

#[tokio::test]
async fn the_rate_limit_filter_answers_429_once_a_client_has_spent_its_limit() {
    let scene = scene_of_descriptors().await;
    let envoy = start(&scene, RATE_LIMIT).await;
    for left in [1, 0] {
        let answer = get(envoy.address, "/users?page=2").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"), "{}", envoy.log());
        let field = answer.field("ratelimit");
        assert!(field.contains(&format!("r={left}")), "{:?}", answer.headers);
        assert_eq!(answer.field("retry-after"), "");
    }
    let refused = get(envoy.address, "/users").await;
    assert_eq!(refused.status, 429);
    let delay: u64 = refused.field("retry-after").parse().expect("a delay");
    assert!((1..=60).contains(&delay), "{:?}", refused.headers);
    assert!(refused.field("ratelimit").contains("r=0"), "{:?}", refused.headers);
    assert_eq!(scene.served(), 2);
    // Another client is another key.
    assert_eq!(get_as(2, envoy.address, "/", &[]).await.status, 200);
}

#[tokio::test]
async fn the_rate_limit_filter_makes_descriptors_of_header_fields() {
    let scene = scene_of_descriptors().await;
    let envoy = start(&scene, RATE_LIMIT).await;
    let key = [("x-api-key", "k1")];
    // Each client is within the limit of its address.
    let mut statuses = Vec::new();
    for client in 1..=3 {
        statuses.push(get_as(client, envoy.address, "/", &key).await.status);
    }
    assert_eq!(statuses, [200, 429, 429]);
    // The refusals are not charged to the address.
    for status in [200, 200, 429] {
        assert_eq!(get_as(2, envoy.address, "/", &[]).await.status, status);
    }
}

#[tokio::test]
async fn the_rate_limit_filter_does_what_its_failure_mode_says_while_the_store_or_the_server_is_away()
 {
    let deny =
        |text: &str| patient(text).replace("failure_mode_deny: false", "failure_mode_deny: true");
    for scene in [Scene::with_store_away().await, Scene::with_server_away().await] {
        let envoy = start(&scene, RATE_LIMIT).await;
        assert_eq!(get(envoy.address, "/").await.status, 200);
        assert_eq!(scene.served(), 1);
        let envoy = start_with(&scene, RATE_LIMIT, deny).await;
        assert_eq!(get(envoy.address, "/").await.status, 503);
        assert_eq!(scene.served(), 1);
    }
}

#[tokio::test]
async fn ext_authz_answers_429_once_a_client_has_spent_its_limit() {
    for file in [OVER_GRPC, OVER_HTTP] {
        let scene = Scene::new().await;
        let envoy = start(&scene, file).await;
        for left in [1, 0] {
            let answer = get(envoy.address, "/users?page=2").await;
            assert_eq!((answer.status, answer.body.as_str()), (200, "hello"), "{}", envoy.log());
            assert_eq!(answer.field("ratelimit"), format!("\"api\";r={left};t=30"), "{file}");
            assert_eq!(answer.field("ratelimit-policy"), "\"api\";q=2;w=60", "{file}");
        }
        let refused = get(envoy.address, "/users?page=2").await;
        assert_eq!((refused.status, refused.field("retry-after")), (429, "30"), "{file}");
        assert_eq!(refused.field("ratelimit"), "\"api\";r=0;t=30", "{file}");
        assert_eq!(refused.field("content-type"), "application/problem+json", "{file}");
        assert!(refused.body.contains("quota-exceeded"), "{file}: {}", refused.body);
        assert_eq!(scene.served(), 2);
        // Another client is another key.
        assert_eq!(get_as(2, envoy.address, "/", &[]).await.status, 200, "{file}");
        // The application's own 403 passes.
        assert_eq!(get_as(3, envoy.address, "/forbidden", &[]).await.body, "the application's own");
    }
}

#[tokio::test]
async fn ext_authz_answers_503_or_lets_requests_pass_while_the_store_or_the_server_is_away() {
    let allow =
        |text: &str| patient(text).replace("failure_mode_allow: false", "failure_mode_allow: true");
    for file in [OVER_GRPC, OVER_HTTP] {
        for scene in [Scene::with_store_away().await, Scene::with_server_away().await] {
            let envoy = start(&scene, file).await;
            assert_eq!(get(envoy.address, "/").await.status, 503, "{file}");
            assert_eq!(scene.served(), 0);
            let envoy = start_with(&scene, file, allow).await;
            assert_eq!(get(envoy.address, "/").await.status, 200, "{file}");
        }
    }
}

#[tokio::test]
async fn a_client_of_envoy_gains_nothing_by_fields_of_its_own() {
    for file in [RATE_LIMIT, OVER_GRPC, OVER_HTTP] {
        let scene = scene_of_descriptors().await;
        let envoy = start(&scene, file).await;
        for status in [200, 200, 429] {
            assert_eq!(get(envoy.address, "/").await.status, status, "{file}");
        }
        let statuses = get_disguised(envoy.address, "/").await;
        // 400 for a `Connection` field that names others.
        assert!(statuses.iter().all(|status| [400, 429].contains(status)), "{file}: {statuses:?}");
        assert_eq!(scene.served(), 2, "{file}");
    }
}

/// What the configurations warn of.
#[tokio::test]
async fn without_use_remote_address_a_client_of_envoy_chooses_its_address() {
    let without =
        |text: &str| patient(text).replace("use_remote_address: true", "use_remote_address: false");
    // Over gRPC, Envoy tells the address of the connection.
    for (file, refused) in [(RATE_LIMIT, 0), (OVER_HTTP, 0), (OVER_GRPC, 3)] {
        let scene = scene_of_descriptors().await;
        let envoy = start_with(&scene, file, without).await;
        let mut statuses = Vec::new();
        for client in 1..=5 {
            let claimed = format!("203.0.113.{client}");
            let fields = [("x-forwarded-for", claimed.as_str())];
            statuses.push(get_as(1, envoy.address, "/", &fields).await.status);
        }
        let refusals = statuses.iter().filter(|status| **status == 429).count();
        assert_eq!(refusals, refused, "{file}: {statuses:?}");
    }
}

#[tokio::test]
async fn ext_authz_counts_requests_of_every_form() {
    for file in [OVER_GRPC, OVER_HTTP] {
        let scene = Scene::new().await;
        let envoy = start(&scene, file).await;
        let mut statuses = Vec::new();
        for head in [
            "GET http://other.example/a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
            "GET //a/../b?c={d} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n",
            "GET /check/nginx HTTP/1.1\r\nhost: x\r\nconnection: close\r\n",
        ] {
            statuses.push(send(envoy.address, &format!("{head}\r\n")).await);
        }
        assert_eq!(statuses, [200, 200, 429, 429], "{file}: {}", envoy.log());
    }
}

#[tokio::test]
async fn a_client_cannot_make_a_question_fail_to_be_let_through() {
    let allow =
        |text: &str| patient(text).replace("failure_mode_allow: false", "failure_mode_allow: true");
    // The first target is not valid. Over gRPC it counts, and the application answers 400. Over HTTP it is the target of the
    // question too, and sluicegate answers 400. Envoy itself refuses the last one.
    for (file, third) in [(OVER_GRPC, 429), (OVER_HTTP, 200)] {
        let scene = Scene::new().await;
        let envoy = start_with(&scene, file, allow).await;
        let mut statuses = Vec::new();
        for target in ["/?<\">", "/a^b", "/{", "/%zz", "/\u{e9}"] {
            let head = format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            statuses.push(send(envoy.address, &head).await);
        }
        assert_eq!(statuses, [400, 200, third, 429, 400], "{file}: {}", envoy.log());
    }
}

/// An address that is spent, with a header field of this value in each request. How many pass?
async fn passed_by_a_spent_address(value: &[u8], change: impl Fn(&str) -> String) -> usize {
    let scene = scene_of_descriptors().await;
    let envoy = start_with(&scene, RATE_LIMIT, change).await;
    for status in [200, 200, 429] {
        assert_eq!(get(envoy.address, "/").await.status, status, "{}", envoy.log());
    }
    let head = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ";
    let request = [&head[..], value, b"\r\n\r\n"].concat();
    let mut passed = 0;
    for _ in 0..20 {
        passed += usize::from(send(envoy.address, &request).await == 200);
    }
    passed
}

#[tokio::test]
async fn a_byte_that_is_no_text_is_no_way_past_the_rate_limit_filter() {
    for value in [&b"\xff"[..], b"a\xc3", b"\xed\xa0\x80", b"\x80"] {
        assert_eq!(passed_by_a_spent_address(value, str::to_owned).await, 0, "{value:?}");
    }
}

#[tokio::test]
async fn a_long_header_in_two_descriptors_is_no_way_past_the_rate_limit_filter() {
    // The actions for the key, once more.
    let key = "                  - actions:\n                    - request_headers: { header_name: x-api-key, descriptor_key: api_key }\n";
    let twice = |text: &str| {
        assert!(text.contains(key), "{text}");
        text.replace(key, &key.repeat(2))
    };
    for bytes in [33_500, 50_000] {
        assert_eq!(passed_by_a_spent_address(&vec![b'a'; bytes], twice).await, 0, "{bytes}");
    }
}
