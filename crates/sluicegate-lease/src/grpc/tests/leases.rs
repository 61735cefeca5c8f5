use super::{granted, lease, outstanding, root, serve};
use crate::amount::Amount;
use crate::client::OnLoss;
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
    assert_eq!(outstanding(&service, "db") + outstanding(&service, "cache"), Amount::ZERO);
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
async fn a_process_that_starts_anew_takes_over_what_it_had() {
    let service = root();
    let server = serve(&service).await;
    let first = LeaseClient::builder().name("worker-1").connect([server.url()]).unwrap();
    let lost = first.resource("db").wants(Amount::units(100)).lease().unwrap();
    let mut lost = lost;
    granted(&mut lost, 100).await;
    // It is killed, so nothing is given back. The new one has another clock, and larger numbers.
    std::mem::forget(first);
    let second = LeaseClient::builder().name("worker-1").connect([server.url()]).unwrap();
    let mut lease =
        second.resource("db").wants(Amount::units(100)).on_loss(OnLoss::Stop).lease().unwrap();
    granted(&mut lease, 100).await;
    assert_eq!(outstanding(&service, "db"), Amount::units(100));
}

#[tokio::test]
async fn an_address_that_cannot_be_right_fails_at_once() {
    let error = LeaseClient::connect("somewhere over there").unwrap_err();
    assert!(error.to_string().contains("is not the address of a server"), "{error}");
    let error = LeaseClient::builder().connect([""; 0]).unwrap_err();
    assert_eq!(error.to_string(), "a client needs the address of at least one server");
}
