//! What the proxy adds: time to a request, processor time of the process, memory of idle WebSockets.
//!
//! `cargo run --release -p sluicegate-server --example overhead` runs the application and the clients in this process, and
//! each proxy in one of its own. `overhead websockets 10000` opens as many idle WebSockets.

use std::convert::Infallible;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use sluicegate_config::{Environment, Live, Policies, read_toml};
use sluicegate_server::proxy::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Requests one after the other, for the time to one.
const ALONE: usize = 4_000;
/// Connections at a time, for the rate.
const CONNECTIONS: usize = 32;
/// Requests on each of them.
const EACH: usize = 500;
/// Rounds, in which the contenders take turns.
const ROUNDS: usize = 5;

const CONTENDERS: [&str; 3] = ["bare", "limits", "throttle"];

#[tokio::main]
async fn main() -> Done {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["bare", upstream] => bare(upstream.parse()?).await,
        [kind @ ("limits" | "throttle"), upstream] => ours(kind, upstream).await,
        ["websockets", count] => websockets(count.parse()?).await,
        _ => compare().await,
    }
}

async fn compare() -> Done {
    let upstream = application().await?;
    let mut proxies = Vec::new();
    for kind in CONTENDERS {
        proxies.push(Process::start(kind, upstream)?);
    }
    let mut alone = vec![Vec::new(); 1 + proxies.len()];
    let mut together = vec![(Duration::ZERO, Duration::ZERO); proxies.len()];
    for _ in 0..ROUNDS {
        times(upstream, ALONE, &mut alone[0]).await?;
        for (at, proxy) in proxies.iter().enumerate() {
            times(proxy.address, ALONE, &mut alone[at + 1]).await?;
            let (before, began) = (proxy.busy()?, Instant::now());
            let mut clients = tokio::task::JoinSet::new();
            for _ in 0..CONNECTIONS {
                let address = proxy.address;
                clients.spawn(async move { times(address, EACH, &mut Vec::new()).await });
            }
            while let Some(done) = clients.join_next().await {
                done??;
            }
            together[at].0 += began.elapsed();
            together[at].1 += proxy.busy()? - before;
        }
    }
    let percentile = |times: &mut Vec<Duration>, share: f64| {
        times.sort_unstable();
        times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6
    };
    let direct = (percentile(&mut alone[0], 0.5), percentile(&mut alone[0], 0.99));
    let requests = (CONNECTIONS * EACH * ROUNDS) as f64;
    println!("proxy|p50 added, us|p99 added, us|requests per second|processor time, us|memory, MB");
    println!("none|{:.0} in all|{:.0} in all|||", direct.0, direct.1);
    for (at, kind) in CONTENDERS.iter().enumerate() {
        let times = &mut alone[at + 1];
        println!(
            "{kind}|{:.0}|{:.0}|{:.0}|{:.1}|{:.1}",
            percentile(times, 0.5) - direct.0,
            percentile(times, 0.99) - direct.1,
            requests / together[at].0.as_secs_f64(),
            together[at].1.as_secs_f64() * 1e6 / requests,
            proxies[at].memory()?,
        );
    }
    Ok(())
}

/// Opens idle WebSockets, and prints the memory of the proxy.
async fn websockets(count: usize) -> Done {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let upstream = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(SWITCHED).await;
                let _ = stream.read(&mut head).await;
            });
        }
    });
    let proxy = Process::start("limits", upstream)?;
    let mut open = Vec::new();
    let before = proxy.memory()?;
    for _ in 0..count {
        let mut client = TcpStream::connect(proxy.address).await?;
        client.write_all(UPGRADE).await?;
        let mut head = [0; 1024];
        let length = client.read(&mut head).await?;
        assert!(head[..length].starts_with(b"HTTP/1.1 101"), "{:?}", &head[..length]);
        open.push(client);
    }
    println!("idle WebSockets|memory before, MB|memory with them, MB");
    println!("{count}|{before:.1}|{:.1}", proxy.memory()?);
    Ok(())
}

const UPGRADE: &[u8] =
    b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
const SWITCHED: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

/// Sends requests one after the other on one connection, and notes how long each took.
async fn times(address: SocketAddr, count: usize, times: &mut Vec<Duration>) -> Done {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut answer = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        stream.write_all(b"GET /a HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\n\r\n").await?;
        answer.clear();
        while !answer.ends_with(b"\r\n\r\nok") {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err("the connection was closed".into());
            }
        }
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&answer).into());
        }
        times.push(began.elapsed());
    }
    Ok(())
}

/// An application that answers everything with `ok`.
async fn application() -> Done<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let answer = service_fn(|_: Request<Incoming>| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer),
            );
        }
    });
    Ok(address)
}

/// The least that hyper-util needs to be a proxy: no limits, no checks, no fields, no times.
async fn bare(upstream: SocketAddr) -> Done {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let pool: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let builder = Builder::new(TokioExecutor::new());
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        let (pool, builder) = (pool.clone(), builder.clone());
        tokio::spawn(async move {
            let forward = service_fn(move |mut request: Request<Incoming>| {
                let path = request.uri().path_and_query().cloned();
                let target = Uri::builder().scheme("http").authority(upstream.to_string());
                let target = target.path_and_query(path.expect("a path")).build();
                *request.uri_mut() = target.expect("a target");
                pool.request(request)
            });
            builder.serve_connection_with_upgrades(TokioIo::new(stream), forward).await
        });
    }
}

/// The proxy, with a limit for each client, and with a throttle if the kind says so.
async fn ours(kind: &str, upstream: &str) -> Done {
    let throttle = match kind {
        "throttle" => "[throttle]\ncapacity = { in_flight = 1000 }\nqueue = { cost = 1000000 }",
        _ => "",
    };
    let text = format!(
        "[listen]\naddress = \"127.0.0.1:0\"\nconnections = 100000\n[upstream]\nurl = \"http://{upstream}\"\n\
         requests = 100000\n{throttle}\n[[rules]]\nname = \"all\"\nkey = \"ip\"\nlimits = [\"1000000000/second\"]"
    );
    let policies = Policies::new(&read_toml(&text)?, &Environment::new())?;
    let bound = Proxy::new(Live::of(policies)).bind().await?;
    println!("{}", bound.address());
    bound.run(std::future::pending()).await;
    Ok(())
}

/// A proxy in a process of its own.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(kind: &str, upstream: SocketAddr) -> Done<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([kind, &upstream.to_string()]).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().parse()? })
    }

    /// The processor time that it has used, in hundredths of a second.
    fn busy(&self) -> Done<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("no fields")?;
        let ticks: u64 =
            fields.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Its resident memory, in megabytes.
    fn memory(&self) -> Done<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: f64 = line
            .and_then(|line| line.split_whitespace().next()?.parse().ok())
            .ok_or("no memory")?;
        Ok(kilobytes / 1e3)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
