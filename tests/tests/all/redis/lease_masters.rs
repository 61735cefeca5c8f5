//! Servers of leases whose master is elected in Redis, over real sockets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sluicegate_lease::client::OnLoss;
use sluicegate_lease::{
    Amount, CapacityService, Lease, LeaseClient, Mastership, Role, Server, Template, Templates,
};
use sluicegate_tests::servers::until;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tonic::transport::server::TcpIncoming;

use super::store::{own_prefix, patient, runtime, shared};

const CAPACITY: u64 = 100;
const SAFE: u64 = 5;
const LEASE: Duration = Duration::from_secs(6);

/// A server in a process of its own, as far as tokio is concerned.
struct Process {
    runtime: Runtime,
    address: SocketAddr,
    roles: watch::Receiver<Role>,
}

impl Process {
    fn start(prefix: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (address, roles) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("an address");
            let redis = patient().url(&shared().url()).prefix(prefix).build().expect("a store");
            let mastership = redis.mastership("quota", &format!("http://{address}"));
            let mastership = mastership.stand().expect("a candidate");
            let roles = mastership.roles();
            let all = Template::new("*", Amount::units(CAPACITY)).safe(Amount::units(SAFE));
            let all = all.lease(LEASE).refresh(Duration::from_millis(200));
            let templates = Templates::new([all]).expect("templates");
            let server = Server::root(format!("server at {address}"), templates);
            let service = CapacityService::builder(server).mastership(mastership).start();
            let router =
                tonic::transport::Server::builder().add_service(service.expect("a service"));
            tokio::spawn(router.serve_with_incoming(TcpIncoming::from(listener)));
            (address, roles)
        });
        Self { runtime, address, roles }
    }

    fn is_master(&self) -> bool {
        matches!(&*self.roles.borrow(), Role::Master { .. })
    }
}

fn used(leases: &[Lease]) -> u64 {
    leases.iter().map(|lease| lease.capacity().as_units()).sum()
}

#[test]
fn a_killed_master_is_followed_by_one_that_over_grants_nothing() {
    let prefix = own_prefix();
    let one = Process::start(&prefix);
    until("a master", || one.is_master().then_some(()));
    let two = Process::start(&prefix);

    let addresses = [one.address, two.address].map(|address| format!("http://{address}"));
    let lease = |_| {
        let _entered = runtime().enter();
        let client = LeaseClient::builder().connect(&addresses).expect("addresses");
        let lease = client.resource("db").wants(Amount::units(40)).on_loss(OnLoss::Safe);
        lease.lease().expect("a lease")
    };
    let leases: Vec<Lease> = (0..5).map(lease).collect();
    until("fair shares", || (used(&leases) == CAPACITY).then_some(()));

    one.runtime.shutdown_background();
    let killed = Instant::now();
    let mut led = None;
    until("new leases by the new master", || {
        assert!(used(&leases) <= CAPACITY);
        for lease in &leases {
            assert!(lease.capacity() >= Amount::units(SAFE), "{:?}", lease.state());
        }
        if led.is_none() && two.is_master() {
            led = Some(killed.elapsed());
        }
        let is_renewed = |lease: &Lease| {
            // Granted a while after the end of the old master, so by the new one.
            let expires = lease.state().expires.map(tokio::time::Instant::into_std);
            expires.is_some_and(|expires| expires > killed + LEASE + Duration::from_millis(300))
        };
        leases.iter().all(is_renewed).then_some(())
    });
    println!("a new master after {led:?}, leases renewed after {:?}", killed.elapsed());
    until("fair shares again", || {
        assert!(used(&leases) <= CAPACITY);
        (used(&leases) == CAPACITY).then_some(())
    });
}
