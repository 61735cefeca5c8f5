//! Many rules in one file.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::server::{descriptor, is_over, start};

const RULES: usize = 10_000;

fn file(count: usize) -> String {
    let mut file = "domain: edge\ndescriptors:\n".to_owned();
    for rule in 0..RULES {
        let _ = writeln!(
            file,
            "- key: user\n  value: user-{rule}\n  rate_limit: {{ unit: hour, requests_per_unit: {count} }}"
        );
    }
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_rules_are_replaced_while_every_call_is_answered() {
    let mut server = start(&file(1_000_000)).await;
    let done = Arc::new(AtomicBool::new(false));
    let calls = tokio::spawn({
        let (mut client, done) = (server.client.clone(), Arc::clone(&done));
        async move {
            let mut answered = 0_u32;
            while !done.load(Ordering::Relaxed) {
                let user = format!("user-{}", answered as usize % RULES);
                let request = envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest {
                    domain: "edge".to_owned(),
                    descriptors: vec![descriptor(&[("user", &user)])],
                    hits_addend: 0,
                };
                let answer = client.should_rate_limit(request).await.expect("an answer");
                assert!(answer.get_ref().statuses[0].current_limit.is_some());
                answered += 1;
            }
            answered
        }
    });
    std::fs::write(&server.file, file(2)).expect("a file");
    let reload = server.reload.clone();
    let began = Instant::now();
    let reloaded = tokio::task::spawn_blocking(move || reload.now()).await.expect("no panic");
    let took = began.elapsed();
    reloaded.expect("a valid file");
    done.store(true, Ordering::Relaxed);
    assert!(calls.await.expect("no panic") > 0);
    // Without optimisation and beside other tests; `cargo build --release` takes a fraction of it. What grows with the
    // square of the file takes hours.
    assert!(took < Duration::from_secs(300), "{took:?}");
    let last = || vec![descriptor(&[("user", "user-9999")])];
    server.ask(last()).await;
    server.ask(last()).await;
    assert!(is_over(&server.ask(last()).await));
}
