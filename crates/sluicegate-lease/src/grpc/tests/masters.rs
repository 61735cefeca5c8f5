//! Several servers, of which one is the master.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tonic::Code;

use super::{
    granted, lease, listen, nothing_is_outstanding, outstanding, serve, serve_on, templates,
};
use crate::amount::Amount;
use crate::grpc::generated as proto;
use crate::grpc::{CapacityService, GrpcTransport, Mastership, Role};
use crate::lease::{LeaseClient, Transport as _};
use crate::message::Request;
use crate::pool::{Change, LeaseHolder};
use crate::server::Server;

/// A mastership that the test decides on.
#[derive(Clone)]
struct Decided {
    role: watch::Sender<Role>,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    changes: Vec<Change>,
    is_lost: bool,
    /// Where it is, nothing is written before it is opened.
    gate: Option<Arc<Semaphore>>,
}

impl Mastership for Decided {
    fn roles(&self) -> watch::Receiver<Role> {
        self.role.subscribe()
    }

    async fn record(&self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let gate = self.book.lock().unwrap().gate.clone();
        if let Some(gate) = gate {
            let _permit = gate.acquire().await?;
        }
        let mut book = self.book.lock().unwrap();
        if book.is_lost {
            return Err("the book is lost".into());
        }
        book.changes.extend(changes);
        Ok(())
    }
}

fn decided(role: Role) -> (Decided, CapacityService) {
    let mastership = Decided { role: watch::Sender::new(role), book: Arc::default() };
    let service = CapacityService::builder(Server::root("root", templates()))
        .mastership(mastership.clone())
        .start()
        .unwrap();
    (mastership, service)
}

fn master(fence: u32) -> Role {
    Role::Master { fence, until: None, known: Some(Arc::new([])) }
}

/// A request for 100 units of `db`.
fn ask(client: &str, sequence: u64) -> proto::GetCapacityRequest {
    proto::GetCapacityRequest {
        client_id: client.into(),
        resource: vec![proto::ResourceRequest {
            resource_id: "db".into(),
            wants: 100.0,
            ..Default::default()
        }],
        sequence: Some(sequence),
        fence: Some(1),
        instance: None,
    }
}

/// Waits until the server leads with this fence.
async fn leads(service: &CapacityService, fence: Option<u64>) {
    while service.with(|server| server.pool().fence()) != fence {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn other(master: &str) -> Role {
    Role::Other { master: Some(master.into()) }
}

#[tokio::test]
async fn a_client_is_sent_to_the_master_at_once() {
    let (_, service) = decided(master(1));
    let leader = serve(&service).await;
    // With a scheme, and without.
    for address in [leader.url(), leader.address.to_string()] {
        let (_, follower) = decided(other(&address));
        let follower = serve(&follower).await;
        let mut took = Vec::new();
        // On a busy machine an attempt may be slow without waiting. A client that backs off always is.
        while took.last().is_none_or(|took| *took >= Duration::from_millis(900)) {
            assert!(took.len() < 20, "it waits to back off: {took:?}");
            let client = LeaseClient::connect(&follower.url()).unwrap();
            let start = Instant::now();
            lease(&client, "db").await;
            took.push(start.elapsed());
            client.close().await;
        }
        // The release goes to the master.
        nothing_is_outstanding(&service, "db").await;
    }
}

#[tokio::test]
async fn servers_that_send_a_client_in_circles_are_not_asked_without_a_pause() {
    let (first, second) = (listen().await, listen().await);
    let (_, one) = decided(other(&second.local_addr().unwrap().to_string()));
    let (_, two) = decided(other(&first.local_addr().unwrap().to_string()));
    let calls = Arc::new(Mutex::new(0));
    let (one, _two) = (serve_on(first, one), serve_on(second, two));
    let counted = calls.clone();
    let transport = GrpcTransport::new([one.url()]).unwrap().dial(move |endpoint| {
        *counted.lock().unwrap() += 1;
        endpoint.connect_lazy()
    });
    let client = LeaseClient::over(transport);
    let lease = client.resource("db").wants(Amount::units(1)).lease().unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(*calls.lock().unwrap() <= 5, "{calls:?}");
    assert_eq!(lease.capacity(), Amount::ZERO);
}

#[tokio::test]
async fn requests_that_fail_on_one_connection_move_on_by_one_server() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let servers = ["http://one:5555", "http://two:5555"];
    let transport = GrpcTransport::new(servers).unwrap().dial(move |endpoint| {
        seen.lock().unwrap().push(endpoint.uri().host().unwrap_or_default().to_owned());
        endpoint.connect_with_connector_lazy(tower::service_fn(|_| async {
            Err::<TokioIo<TcpStream>, _>(io::Error::from(io::ErrorKind::ConnectionRefused))
        }))
    });
    let ask = |sequence| {
        let mut transport = transport.clone();
        let client = "one".into();
        let request = Request { client, instance: 0, sequence, fence: 0, resources: Vec::new() };
        async move { transport.ask(request).await }
    };
    let (first, second) = tokio::join!(ask(1), ask(2));
    assert!(first.is_err() && second.is_err());
    assert!(ask(3).await.is_err());
    assert_eq!(*asked.lock().unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn a_server_that_stops_to_be_the_master_answers_nobody() {
    let (mastership, service) = decided(master(1));
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    let ask = |sequence| proto::GetCapacityRequest {
        client_id: "one".into(),
        resource: vec![proto::ResourceRequest {
            resource_id: "db".into(),
            wants: 10.0,
            ..Default::default()
        }],
        sequence: Some(sequence),
        fence: Some(0),
        instance: Some(7),
    };
    let granted = raw.get_capacity(ask(1)).await.unwrap().into_inner();
    assert_eq!((granted.fence(), granted.response.len()), (1, 1));

    // Its time passes, and nobody tells it: it was stopped, or cut off.
    let until = Some(Instant::now());
    mastership.role.send_replace(Role::Master { fence: 1, until, known: None });
    service.with(|_| ());
    let mut answer = raw.get_capacity(ask(2)).await.unwrap().into_inner();
    while answer.mastership.is_none() {
        // The role has not arrived yet.
        answer = raw.get_capacity(ask(answer.sequence() + 1)).await.unwrap().into_inner();
    }
    assert_eq!((answer.mastership.unwrap().master_address, answer.response.len()), (None, 0));
    let found = raw.discovery(proto::DiscoveryRequest {}).await.unwrap().into_inner();
    assert!(!found.is_master);

    // It is elected again, and knows that the client may hold something.
    let client = "one#0000000000000007".into();
    let known = LeaseHolder { resource: "db".into(), client };
    let known: Option<Arc<[LeaseHolder]>> = Some(Arc::new([known]));
    mastership.role.send_replace(Role::Master { fence: 2, until: None, known });
    let answer = loop {
        let answer = raw.get_capacity(ask(1)).await.unwrap().into_inner();
        if answer.mastership.is_none() {
            break answer;
        }
    };
    assert_eq!(answer.response[0].answer(), proto::Answer::AskAgain);
}

#[tokio::test]
async fn a_client_that_claims_to_know_a_newer_master_does_not_depose_this_one() {
    let (_, service) = decided(master(1));
    let server = serve(&service).await;
    let client = LeaseClient::connect(&server.url()).unwrap();
    lease(&client, "db").await;
    let liar = proto::GetCapacityRequest {
        client_id: "liar".into(),
        resource: vec![proto::ResourceRequest { resource_id: "db".into(), ..Default::default() }],
        sequence: Some(1),
        fence: Some(u64::MAX),
        instance: None,
    };
    let answer = server.raw().await.get_capacity(liar).await.unwrap().into_inner();
    assert!(answer.mastership.is_some());
    let mut lease = client.resource("cache").wants(Amount::units(5)).lease().unwrap();
    granted(&mut lease, 5).await;
}

#[tokio::test]
async fn a_client_is_written_down_before_it_is_answered() {
    let (mastership, service) = decided(master(1));
    let server = serve(&service).await;
    let client = LeaseClient::builder().name("one").connect([server.url()]).unwrap();
    lease(&client, "db").await;
    let changes = mastership.book.lock().unwrap().changes.clone();
    let [Change::Add { client: holder, .. }] = &changes[..] else { panic!("{changes:?}") };
    assert!(
        holder.starts_with("one#"),
        "the process is written down, and not its name alone: {holder}"
    );

    // Where nobody can be written down, nobody new gets anything.
    mastership.book.lock().unwrap().is_lost = true;
    let mut raw = server.raw().await;
    for sequence in [1, 2] {
        let request = proto::GetCapacityRequest {
            client_id: "two".into(),
            resource: vec![proto::ResourceRequest {
                resource_id: "db".into(),
                wants: 10.0,
                ..Default::default()
            }],
            sequence: Some(sequence),
            fence: Some(1),
            instance: None,
        };
        let status = raw.get_capacity(request).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(status.message(), "the client could not be written down: the book is lost");
    }
}

#[tokio::test]
async fn a_master_whose_time_had_passed_does_not_believe_its_old_list_of_clients() {
    let (mastership, service) = decided(master(1));
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    let granted = raw.get_capacity(ask("one", 1)).await.unwrap().into_inner();
    assert_eq!(granted.response[0].gets.capacity, 100.0);

    // Its store answers late: for a moment it is nobody's master, and then goes on with the list of its beginning.
    let known: Option<Arc<[LeaseHolder]>> = Some(Arc::new([]));
    let until = Some(Instant::now());
    mastership.role.send_replace(Role::Master { fence: 1, until, known });
    leads(&service, None).await;
    mastership.role.send_replace(master(1));
    leads(&service, Some(1)).await;
    let answer = raw.get_capacity(ask("two", 1)).await.unwrap().into_inner();
    assert_eq!(answer.response[0].gets.capacity, 0.0, "`one` still holds everything");
}

#[tokio::test]
async fn a_grant_of_a_reign_that_ended_before_it_was_written_down_is_not_sent() {
    let (mastership, service) = decided(master(1));
    let gate = Arc::new(Semaphore::new(0));
    mastership.book.lock().unwrap().gate = Some(gate.clone());
    let server = serve(&service).await;
    let mut raw = server.raw().await;
    let asked = tokio::spawn(async move { raw.get_capacity(ask("one", 1)).await });
    while outstanding(&service, "db").is_zero() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The next reign read the list before `one` was on it.
    mastership.role.send_replace(master(2));
    leads(&service, Some(2)).await;
    gate.add_permits(100);
    let answer = asked.await.unwrap().unwrap().into_inner();
    assert!(answer.mastership.is_some(), "{answer:?}");
}

#[tokio::test]
async fn a_grant_from_before_a_pause_of_the_mastership_is_written_down_before_it_is_sent() {
    let (mastership, service) = decided(master(1));
    let gate = Arc::new(Semaphore::new(0));
    mastership.book.lock().unwrap().gate = Some(gate.clone());
    let server = serve(&service).await;
    let mut asked = Vec::new();
    for client in ["one", "two"] {
        let mut raw = server.raw().await;
        let mut request = ask(client, 1);
        request.resource[0].wants = 10.0;
        let before = outstanding(&service, "db");
        asked.push(tokio::spawn(async move { raw.get_capacity(request).await }));
        // The first is being written down, and the second waits behind it.
        while outstanding(&service, "db") == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    // The store answers late: the server is not sure for a moment, and then goes on with the same reign.
    let (until, known) = (Some(Instant::now()), Some(Arc::new([]) as Arc<[LeaseHolder]>));
    mastership.role.send_replace(Role::Master { fence: 1, until, known });
    leads(&service, None).await;
    mastership.role.send_replace(master(1));
    leads(&service, Some(1)).await;
    gate.add_permits(100);
    for asked in asked {
        let answer = asked.await.unwrap().unwrap().into_inner();
        assert!(answer.mastership.is_none(), "{answer:?}");
    }
    let changes = mastership.book.lock().unwrap().changes.clone();
    for name in ["one", "two"] {
        let is_of = |change: &Change| matches!(change, Change::Add { client, .. } if client.starts_with(name));
        assert!(changes.iter().any(is_of), "{name} is not in {changes:?}");
    }
}
