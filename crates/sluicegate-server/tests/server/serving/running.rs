//! How the server starts, changes and stops.

use std::time::Duration;

use super::server::start;

const ONE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 1 }
";

#[tokio::test]
async fn a_changed_file_is_in_force_at_once_and_keeps_what_was_spent() {
    let mut server = start(ONE).await;
    assert!(!server.is_over(&[("user", "a")]).await);
    assert!(server.is_over(&[("user", "a")]).await);
    std::fs::write(&server.file, ONE.replace("unit: 1 }", "unit: 3 }")).expect("a file");
    server.reload.now().expect("a valid file");
    for over in [false, false, true] {
        assert_eq!(server.is_over(&[("user", "a")]).await, over);
    }
}

#[tokio::test]
async fn a_broken_file_leaves_the_limits_as_they_were() {
    let mut server = start(ONE).await;
    std::fs::write(&server.file, ONE.replace("hour", "fortnight")).expect("a file");
    let problem = server.reload.now().expect_err("a broken file").to_string();
    assert!(problem.contains(":4:23:") && problem.contains("fortnight"), "{problem}");
    assert!(!server.is_over(&[("user", "a")]).await);
    assert!(server.is_over(&[("user", "a")]).await);
}

#[tokio::test]
async fn a_server_that_stops_answers_every_call_that_it_has_accepted() {
    let mut server = start(ONE).await;
    let stop = server.stop.take().expect("a running server");
    let calls: Vec<_> = (0..200)
        .map(|call| {
            let mut client = server.client.clone();
            tokio::spawn(async move {
                let name = format!("user {call}");
                let descriptors = vec![super::server::descriptor(&[("user", &name)])];
                let domain = "edge".to_owned();
                let request = envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest {
                    domain,
                    descriptors,
                    hits_addend: 0,
                };
                client.should_rate_limit(request).await.map(|_| ())
            })
        })
        .collect();
    // Some are answered, some are under way.
    assert!(!server.is_over(&[("user", "a")]).await);
    stop.send(()).expect("a running server");
    for call in calls {
        call.await.expect("no panic").expect("an answer");
    }
    drop(server.client);
    let served = tokio::time::timeout(Duration::from_secs(60), server.served).await;
    served.expect("an end").expect("no panic");
}
