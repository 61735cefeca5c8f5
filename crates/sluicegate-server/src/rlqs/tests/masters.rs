//! Streams of a server that is one of several.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluicegate_lease::pool::{Change, LeaseHolder};
use sluicegate_lease::{Amount, Mastership, Role};
use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::yield_now;
use tonic::codegen::tokio_stream::Stream as _;

use crate::capacity::BucketId;
use crate::rlqs::grpc::Assignments;
use crate::rlqs::quotas::StreamId;
use crate::rlqs::streams::{Message, QuotaStreams};
use crate::rlqs::unit::BucketUsage;
use crate::{Policies, Service};

const CAPACITY: &str = "[[capacity]]\nname = \"db\"\nlimit = \"1000/second burst 100\"\nlease = \"20 seconds\"\n\
    [[capacity.envoy]]\ndomain = \"edge\"\nbucket = { service = \"db\" }\n";

/// A mastership that the test decides on.
#[derive(Clone)]
struct Decided {
    role: watch::Sender<Role>,
    list: Arc<Mutex<Vec<Change>>>,
    /// The list is written only while this is open.
    gate: Arc<Semaphore>,
}

impl Mastership for Decided {
    fn roles(&self) -> watch::Receiver<Role> {
        self.role.subscribe()
    }

    async fn record(&self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _open = self.gate.acquire().await?;
        self.list.lock().unwrap_or_else(PoisonError::into_inner).extend(changes);
        Ok(())
    }
}

struct Server {
    mastership: Decided,
    service: Service,
    streams: Arc<QuotaStreams>,
    _directory: TempDir,
}

fn master(fence: u32, known: &[&str]) -> Role {
    let holder = |client: &&str| LeaseHolder { resource: "db".into(), client: (*client).into() };
    let known = Some(known.iter().map(holder).collect());
    Role::Master { fence, until: None, known }
}

fn other() -> Role {
    Role::Other { master: Some("http://127.0.0.1:1".into()) }
}

impl Server {
    fn start(role: Role) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("capacity.toml");
        std::fs::write(&file, CAPACITY).expect("a file");
        let policies = Policies::new().capacity(&file).expect("a file of capacity");
        let mastership = Decided {
            role: watch::Sender::new(role),
            list: Arc::default(),
            gate: Arc::new(Semaphore::new(1)),
        };
        let service = Service::builder(policies).mastership(mastership.clone()).build();
        let service = service.expect("a service");
        let shared = service.capacity().expect("a capacity");
        let streams = QuotaStreams::start(&service, shared);
        Self { mastership, service, streams, _directory: directory }
    }

    fn open(&self) -> (StreamId, mpsc::Receiver<Message>) {
        self.streams.open(None).expect("it serves").expect("a stream")
    }

    /// Reports a bucket that many requests were denied of.
    fn report(&self, stream: StreamId) {
        self.report_use(stream, 0, 5);
    }

    /// Reports a bucket, and how many requests have passed it.
    fn report_use(&self, stream: StreamId, allowed: u64, seconds: u64) {
        let bucket = BucketId::from([("service".into(), "db".into())]);
        let elapsed = Duration::from_secs(seconds);
        let used = BucketUsage { allowed, denied: 3_000, elapsed };
        let streams = &self.streams;
        streams.report(stream, "edge", vec![(bucket, used)]).expect("a report");
        let streams = Arc::clone(streams);
        tokio::spawn(async move { streams.answer().await });
    }

    fn role(&self, role: Role) {
        self.mastership.role.send_replace(role);
    }

    fn listed(&self) -> Vec<Change> {
        self.mastership.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn outstanding(&self) -> Amount {
        let shared = self.service.capacity().expect("a capacity");
        shared.with(|pool, _| pool.outstanding("db"))
    }
}

/// Lets all tasks run, without a step of the clock.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_is_assigned_only_after_its_bucket_is_in_the_list() {
    let server = Server::start(master(7, &[]));
    let (stream, mut assignments) = server.open();
    let permit = server.mastership.gate.acquire().await.expect("a gate");
    server.report(stream);
    settle().await;
    assert!(assignments.try_recv().is_err());
    assert!(server.outstanding() > Amount::ZERO);
    drop(permit);
    assert!(assignments.recv().await.is_some());
    let [Change::Add { resource, client }] = &server.listed()[..] else {
        panic!("{:?}", server.listed())
    };
    assert_eq!((&**resource, &**client), ("db", "envoy/7/1/2"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_if_its_bucket_cannot_be_written_into_the_list() {
    let server = Server::start(master(1, &[]));
    let (stream, mut assignments) = server.open();
    let _permit = server.mastership.gate.acquire().await.expect("a gate");
    server.report(stream);
    assert!(assignments.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_assigned_by_a_reign_that_ended_while_the_list_was_written() {
    // The same server is elected again at once, or another one.
    for next in [master(2, &[]), other()] {
        let server = Server::start(master(1, &[]));
        let (stream, mut assignments) = server.open();
        let permit = server.mastership.gate.acquire().await.expect("a gate");
        server.report(stream);
        settle().await;
        server.role(next);
        settle().await;
        drop(permit);
        assert!(assignments.recv().await.is_none());
        assert_eq!(server.outstanding(), Amount::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_the_mastership_and_the_next_one_waits_for_what_they_had() {
    let server = Server::start(master(1, &[]));
    let (stream, mut assignments) = server.open();
    server.report(stream);
    assert!(assignments.recv().await.is_some());
    server.role(other());
    assert!(assignments.recv().await.is_none());

    // Of another server, with the same numbers as the stream that comes now would have.
    server.role(master(3, &["envoy/2/3/4"]));
    let (stream, mut assignments) = server.open();
    server.report(stream);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        server.report(stream);
        assert!(assignments.try_recv().is_err());
        assert_eq!(server.outstanding(), Amount::ZERO);
    }
    // The longest that it can last.
    tokio::time::sleep(Duration::from_secs(6)).await;
    server.report(stream);
    assert!(assignments.recv().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_envoy_keeps_most_of_what_it_shows_to_have_at_the_next_master() {
    // Others may have what it had 18 seconds after its last assignment, however long the election takes.
    for (seconds, waits, keeps) in [(5, 0, 245), (5, 11, 245), (5, 13, 0), (18, 0, 0)] {
        let server = Server::start(Role::Other { master: None });
        let (stream, mut assignments) = server.open();
        // 300 a second. The server takes a second and the time of the burst off.
        server.report_use(stream, 300 * seconds, seconds);
        for _ in 0..waits {
            tokio::time::sleep(Duration::from_secs(1)).await;
            server.report(stream);
        }
        server.role(master(2, &["envoy/1/1/2"]));
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert_eq!(assignments.try_recv().is_ok(), keeps > 0, "{seconds} {waits}");
        assert_eq!(server.outstanding().as_f64() as u64, keeps);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_waits_for_the_election_and_ends_where_another_server_wins() {
    let server = Server::start(Role::Other { master: None });
    let (stream, mut won) = server.open();
    server.report(stream);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(won.try_recv().is_err() && !won.is_closed());
    server.role(master(1, &[]));
    assert!(won.recv().await.is_some());

    let server = Server::start(Role::Other { master: None });
    let (_, mut lost) = server.open();
    server.role(other());
    assert!(lost.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_report_from_before_a_pause_proves_nothing() {
    let server = Server::start(master(1, &[]));
    let (stream, mut assignments) = server.open();
    server.report(stream);
    assert!(assignments.recv().await.is_some());
    let held = server.outstanding();
    tokio::time::advance(Duration::from_secs(5)).await;
    server.report(stream);
    assert!(assignments.recv().await.is_none());
    assert_eq!(server.outstanding(), held);
}

#[tokio::test(start_paused = true)]
async fn an_assignment_of_a_process_that_stood_still_is_not_sent() {
    let server = Server::start(master(1, &[]));
    for (late, is_sent) in [(500, true), (501, false)] {
        let (stream, orders) = server.open();
        let (_ended, end) = oneshot::channel();
        let mut assignments = Assignments::new(orders, end);
        server.report(stream);
        settle().await;
        tokio::time::advance(Duration::from_millis(late)).await;
        let next = poll_fn(|cx| Pin::new(&mut assignments).poll_next(cx)).await;
        assert_eq!(next.expect("a message").is_ok(), is_sent, "{late} ms");
        server.streams.close(stream);
    }
}
