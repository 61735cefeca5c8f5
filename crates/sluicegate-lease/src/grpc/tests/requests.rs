//! Requests that cannot be right.

use tonic::{Code, Status};

use super::{outstanding, root, serve, templates};
use crate::amount::Amount;
use crate::grpc::generated as proto;
use crate::grpc::service::Call;
use crate::grpc::{AlwaysMaster, CapacityService};
use crate::server::Server;

fn ask(client: &str, resources: Vec<proto::ResourceRequest>) -> proto::GetCapacityRequest {
    proto::GetCapacityRequest {
        client_id: client.into(),
        resource: resources,
        sequence: Some(1),
        fence: Some(1),
        instance: None,
    }
}

fn resource(name: &str, wants: f64) -> proto::ResourceRequest {
    proto::ResourceRequest { resource_id: name.into(), wants, ..Default::default() }
}

fn clients(service: &CapacityService) -> usize {
    service.with(|server| server.pool().snapshot().iter().map(|one| one.clients).sum())
}

#[tokio::test]
async fn a_request_that_cannot_be_right_changes_nothing() {
    let service = root();
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    let good = || resource("good", 1.0);
    let has = |capacity| Some(proto::Lease { capacity, ..Default::default() });
    let long = "x".repeat(257);
    let cases = [
        (ask("", vec![good()]), "the request names no client"),
        (ask(&long, vec![good()]), "the name of the client is longer than 256 bytes"),
        (ask("one", vec![]), "a request is for 1 to 1000 resources; this one is for 0"),
        (
            ask("one", (0..1_001).map(|n| resource(&n.to_string(), 1.0)).collect()),
            "a request is for 1 to 1000 resources; this one is for 1001",
        ),
        (ask("one", vec![good(), good()]), "the request names `good` twice"),
        (ask("one", vec![good(), resource("", 1.0)]), "the request names no resource"),
        (ask("one", vec![good(), resource(&long, 1.0)]), "a name is longer than 256 bytes"),
        (
            ask("one", vec![good(), resource("db", f64::INFINITY)]),
            "`wants` of `db` is a finite number from 0, not inf",
        ),
        (
            ask("one", vec![good(), resource("db", f64::NAN)]),
            "`wants` of `db` is a finite number from 0, not NaN",
        ),
        (
            ask("one", vec![good(), resource("db", -1.0)]),
            "`wants` of `db` is a finite number from 0, not -1.0",
        ),
        (
            ask("one", vec![good(), proto::ResourceRequest { has: has(-5.0), ..good() }]),
            "`has` of `good` is a finite number from 0, not -5.0",
        ),
        (
            ask("one", vec![proto::ResourceRequest { priority: 256, ..resource("db", 1.0) }]),
            "the priority of `db` is a number from 0 to 255, not 256",
        ),
        (
            ask(
                "one",
                vec![good(), proto::ResourceRequest { weight: Some(0), ..resource("db", 1.0) }],
            ),
            "`db`: a weight is 1 to 100000000000; this one is 0",
        ),
    ];
    for (request, message) in cases {
        let status = raw.get_capacity(request).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, message));
        assert_eq!(clients(&service), 0, "{message}");
    }
}

#[tokio::test]
async fn a_request_of_a_server_that_cannot_be_right_changes_nothing() {
    let service = root();
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    let band = |num_clients| proto::PriorityBandAggregate {
        priority: 0,
        num_clients,
        wants: 1.0,
        whole: None,
    };
    let ask = |wants, outstanding| proto::GetServerCapacityRequest {
        server_id: "leaf".into(),
        resource: vec![proto::ServerCapacityResourceRequest {
            resource_id: "db".into(),
            wants,
            outstanding: Some(outstanding),
            ..Default::default()
        }],
        sequence: Some(1),
        fence: Some(1),
        instance: None,
    };
    let cases = [
        (ask(vec![], 0.0), "`db`: a request has 1 to 64 demands; this one has 0"),
        (ask(vec![band(1); 65], 0.0), "`db`: a request has 1 to 64 demands; this one has 65"),
        (ask(vec![band(-1)], 0.0), "a weight of `db` is at least 1, not -1"),
        (ask(vec![band(1)], f64::NAN), "`outstanding` of `db` is a finite number from 0, not NaN"),
    ];
    for (request, message) in cases {
        let status = raw.get_server_capacity(request).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, message));
        assert_eq!(clients(&service), 0, "{message}");
    }
}

#[tokio::test]
async fn a_request_that_is_too_large_is_not_read() {
    let service = root();
    let server = serve(&service).await;
    let request = ask("one", vec![resource(&"x".repeat(2 << 20), 1.0)]);
    let status = server.raw().await.get_capacity(request).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    assert_eq!(clients(&service), 0);
}

#[tokio::test]
async fn wants_without_end_get_a_fair_share() {
    let service = root();
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    for (client, wants, expected) in [("modest", 40.0, 40.0), ("greedy", f64::MAX, 60.0)] {
        let answer = raw.get_capacity(ask(client, vec![resource("db", wants)])).await.unwrap();
        assert_eq!(answer.into_inner().response[0].gets.capacity, expected);
    }
    assert_eq!(outstanding(&service, "db"), Amount::units(100));
}

#[tokio::test]
async fn a_request_that_comes_twice_counts_once() {
    let service = root();
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    let request = ask("one", vec![resource("db", 40.0)]);
    let first = raw.get_capacity(request.clone()).await.unwrap().into_inner();
    assert_eq!(first.response[0].answer(), proto::Answer::Grant);
    let second = raw.get_capacity(request).await.unwrap().into_inner();
    assert_eq!(second.response[0].answer(), proto::Answer::Stale);
    assert_eq!(outstanding(&service, "db"), Amount::units(40));
}

#[tokio::test]
async fn a_release_that_cannot_be_right_is_refused() {
    let service = root();
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    let release = |client: &str, names: Vec<String>| proto::ReleaseCapacityRequest {
        client_id: client.into(),
        resource_id: names,
        sequence: Some(2),
        fence: Some(1),
        instance: None,
    };
    for request in [release("", vec!["db".into()]), release("one", vec!["db".into(), "db".into()])]
    {
        let status = raw.release_capacity(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn a_call_that_does_not_pass_the_check_changes_nothing() {
    let service = CapacityService::builder(Server::root("root", templates()))
        .mastership(AlwaysMaster::new().fence(1).first())
        .check(|metadata, call| {
            let token = metadata.get("x-client").and_then(|token| token.to_str().ok());
            let is_owner = token == Some(call.client());
            match call {
                Call::Ask(request) if request.resources[0].demands[0].want.weight > 10 => {
                    Err(Status::permission_denied("a weight is at most 10"))
                }
                _ if is_owner => Ok(()),
                _ => Err(Status::permission_denied("that is another client")),
            }
        })
        .start()
        .unwrap();
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    let from = |name: &'static str, message: proto::GetCapacityRequest| {
        let mut request = tonic::Request::new(message);
        request.metadata_mut().insert("x-client", name.parse().unwrap());
        request
    };
    let heavy = proto::ResourceRequest { weight: Some(11), ..resource("db", 40.0) };
    for refused in
        [from("two", ask("one", vec![resource("db", 40.0)])), from("one", ask("one", vec![heavy]))]
    {
        let status = raw.get_capacity(refused).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
    }
    assert_eq!(clients(&service), 0);
    raw.get_capacity(from("one", ask("one", vec![resource("db", 40.0)]))).await.unwrap();

    // Nobody gives back what another client has.
    let release = proto::ReleaseCapacityRequest {
        client_id: "one".into(),
        resource_id: vec!["db".into()],
        sequence: Some(2),
        fence: Some(1),
        instance: None,
    };
    let status = raw.release_capacity(release).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert_eq!(outstanding(&service, "db"), Amount::units(40));
}
