//! Programs with leases and Envoys, all of which know the load balancer alone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluicegate_lease::client::OnLoss;
use sluicegate_lease::{Amount, Lease, LeaseClient};
use sluicegate_tests::command::{Cluster, PATIENCE};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::envoy::Envoy;

/// Units a second.
pub(super) const CAPACITY: u64 = 1_000;

const CLIENTS: usize = 60;
const ENVOYS: usize = 3;

pub(super) struct Users {
    shared: Arc<Shared>,
    looks: AbortHandle,
}

struct Shared {
    _clients: Vec<LeaseClient>,
    leases: Vec<Lease>,
    envoys: Vec<Envoy>,
    /// The most that all of them had at one time.
    most: Mutex<f64>,
}

impl Drop for Users {
    fn drop(&mut self) {
        self.looks.abort();
    }
}

impl Users {
    pub(super) fn start(cluster: &Cluster) -> Self {
        let address = format!("http://{}", cluster.balancer.address);
        let connect = |_| LeaseClient::connect(&address).expect("an address");
        let clients: Vec<_> = (0..CLIENTS).map(connect).collect();
        let lease = |client: &LeaseClient| {
            // All of them want three times as much as there is.
            let wants = Amount::units(3 * CAPACITY / CLIENTS as u64);
            client.resource("db").wants(wants).on_loss(OnLoss::Stop).lease().expect("a lease")
        };
        let leases = clients.iter().map(lease).collect();
        let envoys = (0..ENVOYS).map(|_| Envoy::start(cluster.balancer.address)).collect();
        let shared = Shared { _clients: clients, leases, envoys, most: Mutex::default() };
        let shared = Arc::new(shared);
        let looked = Arc::clone(&shared);
        let looks = tokio::spawn(async move {
            loop {
                looked.look();
                sleep(Duration::from_millis(2)).await;
            }
        });
        Self { shared, looks: looks.abort_handle() }
    }

    /// Waits until each has something, and together nearly all.
    pub(super) async fn all_have_their_part(&self) {
        let all_have = |parts: &[f64]| {
            let all: f64 = parts.iter().sum();
            all >= 0.9 * CAPACITY as f64 && parts.iter().all(|part| *part > 0.0)
        };
        self.until(all_have).await;
    }

    pub(super) async fn nobody_has_anything(&self) {
        self.until(|parts| parts.iter().all(|part| *part == 0.0)).await;
    }

    async fn until(&self, is_so: impl Fn(&[f64]) -> bool) {
        let is_so = async {
            while !is_so(&self.shared.parts()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = timeout(PATIENCE, is_so).await;
        assert!(waited.is_ok(), "{:?}", self.shared.parts());
    }

    /// Lets time pass: real processes have no clock that a test could turn.
    pub(super) async fn use_it_for(&self, time: Duration) {
        sleep(time).await;
    }

    pub(super) fn never_had_more_than_there_is(&self) {
        let most = *self.shared.most.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(most > 0.9 * CAPACITY as f64 && most <= CAPACITY as f64 + 0.001, "{most}");
    }
}

impl Shared {
    /// What each of them may use a second.
    fn parts(&self) -> Vec<f64> {
        let leases = self.leases.iter().map(|lease| lease.capacity().as_f64());
        leases.chain(self.envoys.iter().map(Envoy::rate)).collect()
    }

    /// Parts change while they are read. What one of two readings does not show, it did not have in between.
    fn look(&self) {
        let (one, two) = (self.parts(), self.parts());
        let all: f64 = one.iter().zip(two).map(|(one, two)| one.min(two)).sum();
        let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        *most = most.max(all);
    }
}
