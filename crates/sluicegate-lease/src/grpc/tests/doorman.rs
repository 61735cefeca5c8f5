//! Programs that know Doorman's messages, and no others.

use tonic::Code;

use super::{outstanding, root, serve};
use crate::amount::Amount;
use crate::grpc::generated as proto;
use crate::grpc::{AlwaysMaster, CapacityService};
use crate::server::Server;
use crate::template::{Template, Templates};

fn ask(client: &str, resource: &str, wants: f64, has: f64) -> proto::GetCapacityRequest {
    let has = proto::Lease { capacity: has, ..Default::default() };
    proto::GetCapacityRequest {
        client_id: client.into(),
        resource: vec![proto::ResourceRequest {
            resource_id: resource.into(),
            has: Some(has),
            wants,
            ..Default::default()
        }],
        sequence: None,
        fence: None,
        instance: None,
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

#[tokio::test]
async fn a_client_of_doorman_gets_a_lease_in_seconds() {
    let service = root();
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    for has in [0.0, 40.0, 40.0] {
        let before = now();
        let answer = raw.get_capacity(ask("old", "db", 40.0, has)).await.unwrap().into_inner();
        let gets = answer.response[0].gets;
        assert_eq!((gets.capacity, gets.refresh_interval), (40.0, 5));
        assert!((before + 60..=now() + 60).contains(&gets.expiry_time));
    }
    assert_eq!(outstanding(&service, "db"), Amount::units(40));
    let release = proto::ReleaseCapacityRequest {
        client_id: "old".into(),
        resource_id: vec!["db".into()],
        sequence: None,
        fence: None,
        instance: None,
    };
    raw.release_capacity(release).await.unwrap();
    assert_eq!(outstanding(&service, "db"), Amount::ZERO);
}

#[tokio::test]
async fn a_client_of_doorman_keeps_what_it_has_while_a_server_learns() {
    let templates = Templates::new([Template::new("*", Amount::units(100))]).unwrap();
    let service = CapacityService::builder(Server::root("root", templates))
        .mastership(AlwaysMaster::new().fence(7))
        .start()
        .unwrap();
    let server = serve(&service).await;
    let answer = server.raw().await.get_capacity(ask("old", "db", 40.0, 25.0)).await.unwrap();
    assert_eq!(answer.into_inner().response[0].gets.capacity, 25.0);
}

#[tokio::test]
async fn a_client_of_doorman_without_a_lease_gets_an_error_and_not_an_odd_grant() {
    let service = root();
    service.with(|server| {
        let pool = server.pool();
        *pool = pool.clone().bounded(1, 1);
    });
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    raw.get_capacity(ask("old", "db", 40.0, 0.0)).await.unwrap();
    let status = raw.get_capacity(ask("other", "db", 40.0, 0.0)).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "the server has no room for another client");
}

#[tokio::test]
async fn a_client_of_doorman_finds_the_master() {
    let service = CapacityService::builder(Server::root("root", super::templates()))
        .mastership(AlwaysMaster::new().fence(1).first())
        .address("10.0.0.7:5555")
        .start()
        .unwrap();
    let server = serve(&service).await;
    let found =
        server.raw().await.discovery(proto::DiscoveryRequest {}).await.unwrap().into_inner();
    assert!(found.is_master);
    assert_eq!(found.mastership.master_address(), "10.0.0.7:5555");
}
