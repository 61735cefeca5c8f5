//! Envoys and programs with leases, all of which know the load balancer alone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sluicegate::Limiter;
use sluicegate_lease::client::OnLoss;
use sluicegate_lease::{Amount, LeaseClient, LeasedLimit};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::proxies::load::{Admitted, Load};
use crate::proxies::program::Program;
use crate::proxies::quotas::envoy;
use crate::proxies::scene::Scene;

/// Requests a second.
pub(super) const CAPACITY: u64 = 1_000;
pub(super) const BURST: u64 = 60;

const ENVOYS: usize = 3;
const CLIENTS: u64 = 6;
/// Together, users want nearly three times as much as there is.
const DEMAND_OF_ENVOY: u64 = 400;
const DEMAND_OF_CLIENT: u64 = 250;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Users {
    admitted: Admitted,
    envoys: Vec<Arc<Load>>,
    clients: Vec<Arc<AtomicU64>>,
    /// The longest time that a short sleep was late by, in microseconds.
    late: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
    _programs: Vec<Program>,
}

impl Users {
    pub(super) async fn start(server: SocketAddr) -> Self {
        let scene = Scene::with_server_at(server, server).await;
        let (admitted, mut tasks) = (Admitted::default(), JoinSet::new());
        let (mut programs, mut envoys) = (Vec::new(), Vec::new());
        for number in 0..ENVOYS {
            let program = envoy(&scene, number).await;
            envoys.push(Load::start(DEMAND_OF_ENVOY, program.address, &admitted));
            programs.push(program);
        }
        let clients = (0..CLIENTS).map(|_| {
            let passed = Arc::new(AtomicU64::new(0));
            tasks.spawn(take(server, admitted.clone(), Arc::clone(&passed)));
            passed
        });
        let clients = clients.collect();
        let late = Arc::new(AtomicU64::new(0));
        tasks.spawn(watch(Arc::clone(&late)));
        Self { admitted, envoys, clients, late, _tasks: tasks, _programs: programs }
    }

    /// What has passed at each so far.
    fn passed(&self) -> Vec<u64> {
        let clients = self.clients.iter().map(|passed| passed.load(Ordering::Relaxed));
        self.envoys.iter().map(|load| load.seen().0).chain(clients).collect()
    }

    /// Waits for a second in which something passed at each, and together most of what there is.
    pub(super) async fn use_most_of_it(&self, when: &str) {
        // A busy machine sends less than it should.
        let is_most = |parts: &[u64]| {
            parts.iter().all(|part| *part > 0) && parts.iter().sum::<u64>() > CAPACITY / 2
        };
        let began = Instant::now();
        loop {
            let before = self.passed();
            sleep(Duration::from_secs(1)).await;
            let passed = self.passed().into_iter().zip(before);
            let parts: Vec<_> = passed.map(|(after, before)| after - before).collect();
            if is_most(&parts) {
                eprintln!("{when}, {parts:?} pass after {:.1?}", began.elapsed());
                return;
            }
            let told = || self.envoys.iter().map(|load| load.told()).collect::<Vec<_>>();
            assert!(began.elapsed() < PATIENCE, "{when}: {parts:?} pass, {:?}", told());
        }
    }

    /// The longest time that the machine was late by since the last call.
    pub(super) fn longest_delay(&self) -> Duration {
        Duration::from_micros(self.late.swap(0, Ordering::Relaxed))
    }

    pub(super) fn never_had_more_than_there_is(&self) {
        let most = self.admitted.most_within(Duration::from_secs(1));
        // An Envoy's part of the burst is rounded up to one, and clients begin with a burst of their own.
        let bound = CAPACITY + BURST + ENVOYS as u64 + CLIENTS * BURST_OF_CLIENT;
        eprintln!("at most {most} of {bound} in a second");
        assert!(most as u64 <= bound, "{most} in a second, {bound} allowed");
    }
}

const BURST_OF_CLIENT: u64 = 1;

/// A program that does its work with a lease.
async fn take(server: SocketAddr, admitted: Admitted, passed: Arc<AtomicU64>) {
    let client = LeaseClient::connect(&format!("http://{server}")).expect("an address");
    let wants = Amount::units(DEMAND_OF_CLIENT);
    let lease = client.resource("db").wants(wants).on_loss(OnLoss::Stop).lease().expect("a lease");
    let limit = lease.limit(LeasedLimit::rate("db").burst(BURST_OF_CLIENT)).expect("a limit");
    let limiter = Limiter::new(limit.limit()).store(limit);
    let mut ticks = interval(Duration::from_secs(1) / DEMAND_OF_CLIENT as u32);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    loop {
        ticks.tick().await;
        let sent = Instant::now();
        if limiter.take("").now().expect("a decision").is_admitted() {
            admitted.add(sent, Instant::now());
            passed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Notes how late the machine is.
async fn watch(late: Arc<AtomicU64>) {
    const PAUSE: Duration = Duration::from_millis(10);
    loop {
        let began = Instant::now();
        sleep(PAUSE).await;
        let over = began.elapsed().saturating_sub(PAUSE);
        late.fetch_max(over.as_micros() as u64, Ordering::Relaxed);
    }
}
