use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluicegate_lease::client::OnLoss;
use sluicegate_lease::message::{Release, Request, Response};
use sluicegate_lease::{
    Amount, CapacityService, GrpcTransport, LeaseClient, Mastership, Server, Template, Templates,
    Transport, TransportError,
};
use tokio::time::{sleep, timeout};
use turmoil::{Builder, Sim};

use super::socket::{accept, dial};

/// Port of every server.
pub(crate) const PORT: u16 = 5_555;
/// What there is.
pub(crate) const CAPACITY: Amount = Amount::units(100);

/// Hosts on a simulated network, and what each client uses.
pub(crate) struct World {
    pub(crate) sim: Sim<'static>,
    used: Arc<Mutex<BTreeMap<&'static str, Amount>>>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let sim = Builder::new()
            .rng_seed(seed)
            .tick_duration(Duration::from_millis(5))
            .simulation_duration(Duration::from_secs(3_600))
            .min_message_latency(Duration::from_millis(20))
            .max_message_latency(Duration::from_millis(200))
            .build();
        Self { sim, used: Arc::default() }
    }

    /// Runs a server on a host. `make` is called again after a crash.
    pub(crate) fn server(
        &mut self,
        host: &'static str,
        make: impl Fn() -> CapacityService + 'static,
    ) {
        self.sim.host(host, move || {
            let service = make();
            async move {
                let sockets = accept(PORT).await?;
                let server = tonic::transport::Server::builder().add_service(service);
                Ok(server.serve_with_incoming(sockets).await?)
            }
        });
    }

    /// Runs a client that wants 40 units on a host.
    pub(crate) fn client(&mut self, host: &'static str, servers: &'static [&str], on_loss: OnLoss) {
        let used = self.used.clone();
        self.sim.host(host, move || {
            let used = used.clone();
            async move {
                let transport = GrpcTransport::new(servers)?.dial(dial);
                let client = LeaseClient::builder().name(host).over(Doubled(transport));
                let wants = Amount::units(40);
                let lease = client.resource("db").wants(wants).on_loss(on_loss).lease()?;
                loop {
                    used.lock().unwrap().insert(host, lease.capacity());
                    sleep(Duration::from_millis(5)).await;
                }
            }
        });
    }

    /// A client loses its memory, and stops to use anything.
    pub(crate) fn crash_client(&mut self, host: &'static str) {
        self.sim.crash(host);
        self.used.lock().unwrap().insert(host, Amount::ZERO);
    }

    /// What a client uses.
    pub(crate) fn used_by(&self, host: &str) -> Amount {
        self.used.lock().unwrap().get(host).copied().unwrap_or(Amount::ZERO)
    }

    /// What all clients use.
    pub(crate) fn used(&self) -> Amount {
        self.used.lock().unwrap().values().copied().sum()
    }

    /// Lets time pass. At no moment is more used than there is.
    pub(crate) fn run(&mut self, time: Duration) {
        self.run_and(time, |_| {});
    }

    /// Lets time pass, and looks at each moment.
    pub(crate) fn run_and(&mut self, time: Duration, look: impl Fn(&Self)) {
        let end = self.sim.elapsed() + time;
        while self.sim.elapsed() < end {
            self.sim.step().unwrap();
            let used = self.used();
            assert!(used <= CAPACITY, "{used} at {:?}: {:?}", self.sim.elapsed(), self.used);
            look(self);
        }
    }

    /// Lets time pass until clients use nearly everything.
    #[track_caller]
    pub(crate) fn run_until_used(&mut self, longest: Duration) {
        let end = self.sim.elapsed() + longest;
        while self.used() < Amount::units(97) {
            assert!(self.sim.elapsed() < end, "{:?}", self.used);
            self.run(Duration::from_millis(5));
        }
    }
}

/// A server of 100 units, with leases of 10 seconds that are asked for each second.
pub(crate) fn root(mastership: impl Mastership) -> CapacityService {
    let template = Template::new("*", CAPACITY).lease(Duration::from_secs(10));
    let templates = Templates::new([template.refresh(Duration::from_secs(1))]).unwrap();
    CapacityService::builder(Server::root("root", templates))
        .mastership(mastership)
        .start()
        .unwrap()
}

/// Sends each request once more, three seconds later.
struct Doubled(GrpcTransport);

impl Transport for Doubled {
    fn ask(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<Response, TransportError>> + Send + 'static {
        let mut transport = self.0.clone();
        let again = request.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(3)).await;
            // Nobody waits for the answer.
            let _ = timeout(Duration::from_secs(1), transport.ask(again)).await;
        });
        self.0.ask(request)
    }

    fn release(
        &mut self,
        release: Release,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        self.0.release(release)
    }
}
