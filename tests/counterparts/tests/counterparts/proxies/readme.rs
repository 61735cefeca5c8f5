//! The lines for each proxy that the README shows.

use sluicegate_counterparts::root;

use crate::proxies::client::get;
use crate::proxies::envoy;
use crate::proxies::scene::Scene;

/// The block of the README after these words.
fn block(words: &str) -> String {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let (_, rest) = readme.split_once(words).unwrap_or_else(|| panic!("no {words:?}"));
    let (_, rest) = rest.split_once("```").expect("a block");
    let (_, rest) = rest.split_once('\n').expect("lines");
    let (block, _) = rest.split_once("```").expect("an end");
    block.to_owned()
}

/// The tested file has them too.
#[test]
fn the_lines_for_nginx_are_in_the_configuration_that_is_tested() {
    let tested = std::fs::read_to_string(root().join("docs/proxies/nginx.conf"));
    // Comments of the file explain more.
    let line = |line: &str| line.split("  #").next().unwrap_or_default().trim().to_owned();
    let tested: Vec<_> = tested.expect("a file").lines().map(line).collect();
    let shown: Vec<_> = block("In nginx:").lines().map(line).collect();
    assert!(tested.windows(shown.len()).any(|lines| lines == shown), "{shown:?}");
}

#[tokio::test]
async fn the_lines_for_envoy_limit() {
    let lines = envoy::patient(&block("In Envoy:"));
    let lines: String = lines.lines().map(|line| format!("          {line}\n")).collect();
    let filter = |text: &str| {
        let (before, rest) =
            text.split_once("          - name: envoy.filters.http.ext_authz").expect("a filter");
        let (_, after) =
            rest.split_once("          - name: envoy.filters.http.router").expect("a filter");
        format!("{before}{lines}          - name: envoy.filters.http.router{after}")
    };
    let scene = Scene::new().await;
    let envoy = envoy::start_with(&scene, envoy::OVER_GRPC, filter).await;
    for status in [200, 200, 429] {
        assert_eq!(get(envoy.address, "/").await.status, status, "{}", envoy.log());
    }
    for scene in [Scene::with_store_away().await, Scene::with_server_away().await] {
        let envoy = envoy::start_with(&scene, envoy::OVER_GRPC, filter).await;
        assert_eq!(get(envoy.address, "/").await.status, 503);
    }
}
