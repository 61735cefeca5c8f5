//! The load that many clients put on one server, over real connections. Prints what part of a processor the server
//! needs, and how long clients wait for answers.
//!
//! ```sh
//! cargo run --release -p sluicegate-lease --features grpc --example load -- 10000 10000 1 10
//! ```
//!
//! The arguments are the number of clients, of connections and of resources, and how many seconds are measured. Each
//! client asks once a second. The server is a process of its own with one thread, and takes its time from Linux.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs};

use sluicegate_lease::message::{Release, Request, Response};
use sluicegate_lease::{
    AlwaysMaster, Amount, CapacityService, GrpcTransport, LeaseClient, Server, Template, Templates,
    Transport, TransportError,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "server") {
        return tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(serve());
    }
    let number = |at: usize, default: usize| {
        arguments.get(at).map_or(Ok(default), |argument| argument.parse())
    };
    let load = Load {
        clients: number(0, 10_000)?,
        connections: number(1, 10_000)?,
        resources: number(2, 1)?,
        time: Duration::from_secs(number(3, 10)? as u64),
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(load.run())
}

async fn serve() -> Outcome<()> {
    let template = Template::new("*", Amount::units(100_000)).refresh(Duration::from_secs(1));
    let service = CapacityService::builder(Server::root("root", Templates::new([template])?))
        .mastership(AlwaysMaster::new().fence(1).first())
        .start()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let server = tonic::transport::Server::builder().add_service(service);
    server.serve_with_incoming(TcpListenerStream::new(listener)).await?;
    Ok(())
}

struct Load {
    clients: usize,
    connections: usize,
    resources: usize,
    time: Duration,
}

impl Load {
    async fn run(self) -> Outcome<()> {
        let server = Process::start()?;
        let waits = Arc::new(Waits::default());
        let connections = 0..self.connections.min(self.clients).max(1);
        let connections: Vec<GrpcTransport> =
            connections.map(|_| GrpcTransport::new([&server.address])).collect::<Result<_, _>>()?;
        let mut leases = Vec::new();
        for client in 0..self.clients {
            let transport = connections[client % connections.len()].clone();
            let transport = Timed { transport, waits: waits.clone() };
            let resource = format!("resource-{}", client % self.resources.max(1));
            let client = LeaseClient::builder().name(format!("client-{client}")).over(transport);
            leases.push(client.resource(resource).wants(Amount::units(30)).lease()?);
            if leases.len() % 20 == 0 {
                // They begin within a second for 2,000, as they would in a fleet.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(5)).await;

        waits.is_counting.store(true, Ordering::Relaxed);
        let (start, used) = (Instant::now(), server.processor_time()?);
        tokio::time::sleep(self.time).await;
        let (time, used) = (start.elapsed(), server.processor_time()? - used);
        waits.is_counting.store(false, Ordering::Relaxed);

        let mut waits = std::mem::take(&mut *waits.micros.lock().expect("nobody panics"));
        waits.sort_unstable();
        let quantile = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize];
        let holding = leases.iter().filter(|lease| !lease.capacity().is_zero()).count();
        println!(
            "{} clients, {holding} with a lease, on {} connections: {:.0} requests/s",
            self.clients,
            connections.len(),
            waits.len() as f64 / time.as_secs_f64()
        );
        println!(
            "server: {:.1} % of one processor, {:.1} µs a request",
            100.0 * used.as_secs_f64() / time.as_secs_f64(),
            used.as_secs_f64() * 1e6 / waits.len() as f64
        );
        println!("memory: {} bytes a client", server.memory()? / self.clients.max(1) as u64);
        println!(
            "an answer takes {} µs (median), {} µs (p99), {} µs (p99.9)",
            quantile(0.5),
            quantile(0.99),
            quantile(0.999)
        );
        Ok(())
    }
}

/// How long each client waited for each answer.
#[derive(Default)]
struct Waits {
    is_counting: AtomicBool,
    micros: Mutex<Vec<u128>>,
}

struct Timed {
    transport: GrpcTransport,
    waits: Arc<Waits>,
}

impl Transport for Timed {
    fn ask(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<Response, TransportError>> + Send + 'static {
        let waits = self.waits.clone();
        let answer = self.transport.ask(request);
        async move {
            let start = Instant::now();
            let answer = answer.await;
            if waits.is_counting.load(Ordering::Relaxed) {
                waits.micros.lock().expect("nobody panics").push(start.elapsed().as_micros());
            }
            answer
        }
    }

    fn release(
        &mut self,
        release: Release,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        self.transport.release(release)
    }
}

/// The server, which ends when this is dropped.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn start() -> Outcome<Self> {
        let mut child =
            Command::new(env::current_exe()?).arg("server").stdout(Stdio::piped()).spawn()?;
        let mut address = String::from("http://");
        let output = child.stdout.take().ok_or("the server has no output")?;
        BufReader::new(output).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }

    /// What it has used of the processor.
    fn processor_time(&self) -> Outcome<Duration> {
        // See proc_pid_schedstat(5): the first number is nanoseconds.
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let times = fs::read_to_string(thread?.path().join("schedstat"))?;
            sum += times.split(' ').next().ok_or("an empty file")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(sum))
    }

    /// Its memory in bytes.
    fn memory(&self) -> Outcome<u64> {
        let pages = fs::read_to_string(format!("/proc/{}/statm", self.child.id()))?;
        Ok(4_096 * pages.split(' ').nth(1).ok_or("an empty file")?.parse::<u64>()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
