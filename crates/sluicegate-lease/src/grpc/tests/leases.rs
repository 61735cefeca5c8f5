use super::{granted, lease, nothing_is_outstanding, outstanding, root, serve};
use crate::amount::Amount;
use crate::client::OnLoss;
use crate::grpc::generated as proto;
use crate::lease::{Basis, LeaseClient};

#[tokio::test]
async fn a_client_leases_from_a_server_and_gives_back_when_it_ends() {
    let service = root();
    let server = serve(&service).await;
    let client = LeaseClient::connect(&server.url()).unwrap();
    let (db, cache) = (lease(&client, "db").await, lease(&client, "cache").await);
    assert_eq!((db.basis(), cache.capacity()), (Basis::Lease, Amount::units(30)));
    assert_eq!(db.state().safe, Amount::units(3));
    assert_eq!(outstanding(&service, "db"), Amount::units(30));

    client.close().await;
    client.close().await;
    nothing_is_outstanding(&service, "db").await;
    nothing_is_outstanding(&service, "cache").await;
    assert_eq!((db.capacity(), cache.capacity()), (Amount::ZERO, Amount::ZERO));
}

#[tokio::test]
async fn clients_together_get_no_more_than_there_is() {
    let service = root();
    let server = serve(&service).await;
    let mut leases = Vec::new();
    let clients: Vec<_> = (0..5).map(|_| LeaseClient::connect(&server.url()).unwrap()).collect();
    for client in &clients {
        leases.push(client.resource("db").wants(Amount::units(30)).lease().unwrap());
    }
    for lease in &mut leases {
        lease.changed().await.unwrap();
    }
    let sum: Amount = leases.iter().map(super::Lease::capacity).sum();
    assert!(sum <= Amount::units(100), "{sum}");
    assert!(outstanding(&service, "db") <= Amount::units(100));
}

#[tokio::test]
async fn odd_amounts_arrive_in_full() {
    let service = root();
    let server = serve(&service).await;
    let client = LeaseClient::connect(&server.url()).unwrap();
    for (at, millionths) in [1, 3, 29, 99_999_999, 100_000_000 - 7].into_iter().enumerate() {
        let wants = Amount::from_millionths(millionths);
        let mut lease = client.resource(format!("db-{at}")).wants(wants).lease().unwrap();
        lease.changed().await.unwrap();
        assert_eq!(lease.capacity(), wants);
    }
}

#[tokio::test]
async fn two_processes_of_one_name_hold_no_more_than_there_is() {
    let service = root();
    let server = serve(&service).await;
    let first = LeaseClient::builder().name("worker-1").connect([server.url()]).unwrap();
    let lost = first.resource("db").wants(Amount::units(100)).lease().unwrap();
    let mut lost = lost;
    granted(&mut lost, 100).await;
    // Another one was started by mistake, or the first one was killed and starts anew.
    let second = LeaseClient::builder().name("worker-1").connect([server.url()]).unwrap();
    let mut lease =
        second.resource("db").wants(Amount::units(100)).on_loss(OnLoss::Stop).lease().unwrap();
    granted(&mut lease, 50).await;
    assert!(lost.capacity() <= Amount::units(50));
    assert_eq!(outstanding(&service, "db"), Amount::units(100));
}

#[tokio::test]
async fn programs_of_one_name_that_say_nothing_else_hold_no_more_than_there_is() {
    let service = root();
    let server = serve(&service).await;
    let mut programs = [server.raw().await, server.raw().await];
    let mut has = [0.0; 2];
    for sequence in 1..20 {
        for (program, has) in programs.iter_mut().zip(&mut has) {
            let resource = proto::ResourceRequest {
                resource_id: "db".into(),
                wants: 100.0,
                has: Some(proto::Lease { capacity: *has, ..Default::default() }),
                ..Default::default()
            };
            let request = proto::GetCapacityRequest {
                client_id: "program".into(),
                resource: vec![resource],
                sequence: Some(sequence),
                fence: Some(1),
                instance: None,
            };
            let answer = program.get_capacity(request).await.unwrap().into_inner();
            *has = answer.response[0].gets.capacity;
        }
        assert!(has[0] + has[1] <= 100.0, "{has:?}");
    }
    assert_eq!(has, [50.0; 2]);

    // One comes back on another connection, and says what it had: until that has ended, it counts beside.
    let mut again = server.raw().await;
    let resource = proto::ResourceRequest {
        resource_id: "db".into(),
        wants: 100.0,
        has: Some(proto::Lease { capacity: 50.0, ..Default::default() }),
        ..Default::default()
    };
    let request = proto::GetCapacityRequest {
        client_id: "program".into(),
        resource: vec![resource],
        sequence: Some(20),
        fence: Some(1),
        instance: None,
    };
    let answer = again.get_capacity(request).await.unwrap().into_inner();
    assert_eq!(answer.response[0].gets.capacity, 0.0);
    assert_eq!(outstanding(&service, "db"), Amount::units(100));
}

#[tokio::test]
async fn an_address_that_cannot_be_right_fails_at_once() {
    let error = LeaseClient::connect("somewhere over there").unwrap_err();
    assert!(error.to_string().contains("is not the address of a server"), "{error}");
    let error = LeaseClient::builder().connect([""; 0]).unwrap_err();
    assert_eq!(error.to_string(), "a client needs the address of at least one server");
}
