//! How the server starts, changes and stops.

use std::time::Duration;

use crate::server::start;

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
                let descriptors = vec![crate::server::descriptor(&[("user", &name)])];
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
    let served = tokio::time::timeout(Duration::from_secs(10), server.served).await;
    served.expect("an end").expect("no panic");
}

#[tokio::test]
async fn tools_find_the_services_and_their_health() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

    const RLS: &str = "envoy.service.ratelimit.v3.RateLimitService";

    let server = start(ONE).await;
    let channel = tonic::transport::Channel::from_shared(server.grpc.clone()).expect("an address");
    let channel = channel.connect().await.expect("a connection");
    for service in [RLS, ""] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let health = HealthClient::new(channel.clone()).check(request).await.expect("an answer");
        assert_eq!(health.get_ref().status, 1, "{service}");
    }
    for (question, answer) in [
        (MessageRequest::ListServices(String::new()), RLS),
        (MessageRequest::FileContainingSymbol(RLS.to_owned()), "ShouldRateLimit"),
        (MessageRequest::FileByFilename("google/protobuf/struct.proto".to_owned()), "ListValue"),
    ] {
        let request =
            ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        let requests = tokio_stream::once(request);
        let mut client = ServerReflectionClient::new(channel.clone());
        let answers = client.server_reflection_info(requests).await.expect("a stream");
        let first = answers.into_inner().message().await.expect("an answer").expect("an answer");
        let told = prost::Message::encode_to_vec(&first);
        assert!(String::from_utf8_lossy(&told).contains(answer), "{answer}");
    }
}
