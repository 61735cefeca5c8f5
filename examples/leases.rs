//! A dozen clients share 1,000 requests a second, by leases of two servers that lease them from a third.
//!
//!     cargo run --example leases
//!
//! The servers are real, on free ports of 127.0.0.1. Each client learns what it wants from what is asked of it, and decides by
//! itself. One client jumps to ten times its wants. Then the server of half of the clients is killed: they use what they
//! leased until the lease ends, and after that the safe capacity. The server comes back. All of it ends by itself after half a
//! minute.

use std::error::Error;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluicegate::Limiter;
use sluicegate_lease::client::OnLoss;
use sluicegate_lease::{
    AlwaysMaster, Amount, Basis, CapacityService, GrpcTransport, Lease, LeaseClient, LeasedLimit,
    Server, Template, Templates,
};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, interval_at};
use tokio_stream::wrappers::TcpListenerStream;

type Failure = Box<dyn Error + Send + Sync>;

/// Requests in a second, of all clients together.
const CAPACITY: u64 = 1_000;
/// What a client may use without a lease.
const SAFE: u64 = 20;
/// What is asked of a client in a second.
const ASKED: u64 = 60;
/// Clients of each leaf.
const CLIENTS: usize = 6;
/// How often in a second a client sends what is asked of it.
const TICKS: u32 = 50;

/// What happens, and in which second.
const SCRIPT: [(u32, Event); 4] =
    [(6, Event::Jump), (12, Event::CalmDown), (15, Event::Kill), (22, Event::ComeBack)];
const END: u32 = 29;
/// The client that jumps, and the leaf that is killed.
const JUMPER: usize = 3;
const KILLED: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Jump,
    CalmDown,
    Kill,
    ComeBack,
}

impl Event {
    const fn text(self) -> &'static str {
        match self {
            Self::Jump => "client 4 is asked for ten times as much",
            Self::CalmDown => "client 4 is asked for as much as before",
            Self::Kill => "leaf B is killed: its clients have leases for 4 more seconds",
            Self::ComeBack => "leaf B is back, and learns for as long as a lease",
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut lines = 0;
    let end = run(Duration::from_secs(1), |shown| lines = draw(shown, lines)).await;
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the script; a second takes `second`, so that a test need not wait for half a minute.
async fn run(second: Duration, mut show: impl FnMut(&Shown)) -> Result<(), Failure> {
    let template = Template::new("*", Amount::units(CAPACITY)).safe(Amount::units(SAFE));
    let server = Server::root("root", templates(template, second)?);
    // Nobody can hold a lease of a server that was never there before.
    let first = || AlwaysMaster::new().fence(1).first();
    let root = Machine::start(free_port().await?, server, first(), None)?;
    let leaf = |name: &str, address, master| {
        let template = Template::from_parent("*").safe(Amount::units(SAFE));
        let server = Server::child(name, templates(template, second)?);
        Machine::start(address, server, master, Some(root.url()))
    };
    let mut leaves = [
        Some(leaf("leaf-a", free_port().await?, first())?),
        Some(leaf("leaf-b", free_port().await?, first())?),
    ];
    let mut clients = Vec::new();
    for at in 0..2 * CLIENTS {
        let leaf = leaves[at / CLIENTS].as_ref().expect("it was started");
        clients.push(Client::start(&leaf.url(), second)?);
    }

    let mut seconds = interval_at(tokio::time::Instant::now() + second, second);
    for number in 1..=END {
        seconds.tick().await;
        let event = SCRIPT.iter().find(|(at, _)| *at == number).map(|(_, event)| *event);
        match event {
            Some(Event::Jump) => clients[JUMPER].asked.store(10 * ASKED, Ordering::Relaxed),
            Some(Event::CalmDown) => clients[JUMPER].asked.store(ASKED, Ordering::Relaxed),
            Some(Event::Kill) => leaves[KILLED] = None,
            Some(Event::ComeBack) => {
                // At the address where its clients know it. What it had leased to them, it has to learn.
                let address = clients[KILLED * CLIENTS].server;
                leaves[KILLED] = Some(leaf("leaf-b", address, AlwaysMaster::new().fence(2))?);
            }
            None => {}
        }
        let rows = clients.iter().map(Client::report).collect();
        show(&Shown { second: number, event, rows });
    }
    for client in &clients {
        client.task.abort();
    }
    Ok(())
}

fn templates(template: Template, second: Duration) -> Result<Templates, Failure> {
    Ok(Templates::new([template.lease(4 * second).refresh(second / 2)])?)
}

/// A server with a runtime of its own, so that it can be killed with all of its connections.
struct Machine {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Machine {
    fn start(
        address: SocketAddr,
        server: Server,
        master: AlwaysMaster,
        parent: Option<String>,
    ) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        {
            let _inside = runtime.enter();
            let mut service = CapacityService::builder(server).mastership(master);
            if let Some(parent) = parent {
                service = service.parent(GrpcTransport::new([parent])?);
            }
            let incoming = TcpListenerStream::new(TcpListener::from_std(listener)?);
            let server = tonic::transport::Server::builder().add_service(service.start()?);
            tokio::spawn(server.serve_with_incoming(incoming));
        }
        Ok(Self { address, runtime: Some(runtime) })
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn free_port() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?)
}

/// A client: a lease, and a limit that follows it.
struct Client {
    server: SocketAddr,
    lease: Lease,
    asked: Arc<AtomicU64>,
    admitted: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Client {
    fn start(url: &str, second: Duration) -> Result<Self, Failure> {
        let server = url.trim_start_matches("http://").parse()?;
        let lease = LeaseClient::connect(url)?.resource("api").on_loss(OnLoss::Safe);
        let lease = lease.safe(Amount::units(SAFE)).lease()?;
        let limit = lease.limit(LeasedLimit::rate("api").per(second))?;
        let limiter = Limiter::new(limit.limit()).store(limit);

        let (asked, admitted) = (Arc::new(AtomicU64::new(ASKED)), Arc::<AtomicU64>::default());
        let (asks, count) = (Arc::clone(&asked), Arc::clone(&admitted));
        let task = tokio::spawn(async move {
            let mut ticks = interval(second / TICKS);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let mut due = 0;
            loop {
                ticks.tick().await;
                due += asks.load(Ordering::Relaxed);
                for _ in 0..due / u64::from(TICKS) {
                    let is_admitted = limiter.take("").now().is_ok_and(|it| it.is_admitted());
                    count.fetch_add(u64::from(is_admitted), Ordering::Relaxed);
                }
                due %= u64::from(TICKS);
            }
        });
        Ok(Self { server, lease, asked, admitted, task })
    }

    fn report(&self) -> Row {
        Row {
            wants: self.lease.wants().as_f64(),
            granted: self.lease.capacity(),
            basis: self.lease.basis(),
            used: self.admitted.swap(0, Ordering::Relaxed),
        }
    }
}

/// A second of the table.
struct Shown {
    second: u32,
    event: Option<Event>,
    rows: Vec<Row>,
}

/// What a client wants and may use, and what it has used in the last second.
struct Row {
    wants: f64,
    granted: Amount,
    basis: Basis,
    used: u64,
}

impl Shown {
    /// What is leased by all clients together.
    fn leased(&self) -> Amount {
        let leases = self.rows.iter().filter(|row| row.basis == Basis::Lease);
        leases.map(|row| row.granted).sum()
    }
}

/// Draws the table over the one before, if this is a terminal; else one line a second.
fn draw(shown: &Shown, before: usize) -> usize {
    let used: u64 = shown.rows.iter().map(|row| row.used).sum();
    let event = shown.event.map_or("", Event::text);
    let total = format!(
        "{:>2} s: {:>6.1} of {CAPACITY} leased, {used:>4} used  {event}",
        shown.second,
        shown.leased().as_f64()
    );
    if !std::io::stdout().is_terminal() {
        println!("{total}");
        return 0;
    }
    if before > 0 {
        // Up to where the table began, and clear what is below.
        print!("\x1b[{before}A\x1b[J");
    }
    println!("{total}");
    println!("    leaf  client   wants  granted           used");
    for (at, row) in shown.rows.iter().enumerate() {
        let leaf = ["A", "B"][at / CLIENTS];
        let basis = match row.basis {
            Basis::Lease => "leased",
            Basis::Kept => "kept",
            Basis::Safe => "safe",
            Basis::Nothing => "nothing",
        };
        let (number, bar) = (at + 1, "#".repeat(row.used as usize / 8));
        println!(
            "    {leaf:>4}  {number:>6}  {:>6.1}  {:>7.1}  {basis:<7}  {:>4}  {bar}",
            row.wants,
            row.granted.as_f64(),
            row.used
        );
    }
    // The tables of seconds in which something happened stay.
    if event.is_empty() { shown.rows.len() + 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Seen = Vec<Vec<(Amount, Basis)>>;

    /// Runs with seconds of this length, and asserts what holds on any machine.
    async fn seen(second: Duration) -> Seen {
        let mut seen = Vec::new();
        let row = |row: &Row| (row.granted, row.basis);
        run(second, |shown| {
            assert!(
                shown.leased() <= Amount::units(CAPACITY),
                "second {}: {}",
                shown.second,
                shown.leased()
            );
            seen.push(shown.rows.iter().map(row).collect::<Vec<_>>());
        })
        .await
        .unwrap();
        seen
    }

    /// The first second in which something was not as it should be.
    fn wrong(seen: &Seen) -> Option<String> {
        let at = |second: u32| &seen[second as usize - 1];
        let enough = |rows: &[(Amount, Basis)]| {
            rows.iter().all(|(granted, _)| *granted >= Amount::units(50))
        };
        let leased =
            |rows: &[(Amount, Basis)]| rows.iter().all(|(_, basis)| *basis == Basis::Lease);
        let (with, without) = at(21).split_at(CLIENTS);
        let back = &at(END)[CLIENTS..];
        let is_right = [
            // Before anything happens, each client gets what is asked of it.
            (5, enough(at(5))),
            // The one that jumps gets more than before, and the others lose nothing of what they need.
            (11, at(11)[JUMPER].0 >= Amount::units(200) && enough(at(11))),
            // Without their server, clients use the safe capacity; the others go on.
            (
                21,
                leased(with)
                    && without.iter().all(|lost| *lost == (Amount::units(20), Basis::Safe)),
            ),
            // It is back.
            (END, leased(back) && enough(back)),
        ];
        let (second, _) = is_right.into_iter().find(|(_, is_right)| !is_right)?;
        Some(format!("second {second}: {:?}", at(second)))
    }

    /// The clients ask once a second. On a busy machine, an answer may take longer than a short one.
    ///
    /// All clients run on one thread, so that none changes while the leases of all are added up.
    #[tokio::test]
    async fn nothing_is_leased_twice_and_who_loses_its_server_gets_it_back() {
        if wrong(&seen(Duration::from_millis(250)).await).is_some() {
            assert_eq!(wrong(&seen(Duration::from_secs(1)).await), None);
        }
    }
}
