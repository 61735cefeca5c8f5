//! What a server process does.

use std::env;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::process::Command;
use std::time::Duration;
use std::{fs, io, process};

use axum::body::Bytes;
use axum::routing::{get, post};
use axum::{Json, Router};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use serde_json::Value;
use sluicegate_axum::Limit;
use sluicegate_axum::adapter::{Answer, Charge};
use sluicegate_axum::key::KeyBuf;
use sluicegate_axum::store::Store;
use sluicegate_server::admin::metrics::Metrics;
use sluicegate_server::{Policies, Server, Service};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

use super::grpc::{Bare, Limitador};
use crate::services;
use crate::wire::{announce, end_with_parent};

/// A server that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// tonic, which answers OK.
    Tonic,
    /// sluicegate's gRPC, which counts in memory.
    Sluicegate,
    /// sluicegate's gRPC, which counts in the Redis whose URL is the next argument.
    SluicegateRedis,
    /// sluicegate's gRPC in the place of Envoy's service, which counts in memory.
    Like,
    /// sluicegate's gRPC in the place of Envoy's service, which counts in the Redis whose URL is the next argument.
    LikeRedis,
    /// The crate limitador in tonic, which counts in memory.
    Limitador,
    /// The gRPC of throttlecrab-server, whose path is the next argument.
    Throttlecrab,
    /// axum, which answers a GET.
    AxumGet,
    /// axum, which reads and writes JSON.
    AxumPost,
    /// sluicegate's `/check`.
    Check,
    /// sluicegate's `/json`.
    Json,
    /// sluicegate's `/json` in the place of Envoy's service.
    JsonLike,
    /// sluicegate's `/v1/take`.
    Take,
}

const ALL: [Kind; 13] = [
    Kind::Tonic,
    Kind::Sluicegate,
    Kind::SluicegateRedis,
    Kind::Like,
    Kind::LikeRedis,
    Kind::Limitador,
    Kind::Throttlecrab,
    Kind::AxumGet,
    Kind::AxumPost,
    Kind::Check,
    Kind::Json,
    Kind::JsonLike,
    Kind::Take,
];

impl Kind {
    /// The argument that makes this program that server.
    pub fn argument(self) -> String {
        format!("--answer={self:?}")
    }
}

/// The server that the command line asks this process to be, if it does.
pub fn asked_for() -> Option<Kind> {
    let asked = env::args().nth(1)?;
    ALL.into_iter().find(|kind| kind.argument() == asked)
}

/// Writes its address to the standard output, and serves with one thread until the standard input ends.
///
/// # Errors
///
/// When it cannot listen on an address of this machine, or lacks what its kind needs.
pub fn serve(kind: Kind) -> Result<(), Box<dyn Error>> {
    // The rival is a process of its own, which has to be ended first.
    if kind != Kind::Throttlecrab {
        end_with_parent();
    }
    match kind {
        Kind::Tonic => serve_tonic(Bare),
        Kind::Limitador => serve_tonic(Limitador::new()),
        Kind::Throttlecrab => serve_throttlecrab(),
        Kind::AxumGet => serve_axum(Router::new().route("/", get(|| async { "ok" }))),
        Kind::AxumPost => serve_axum(Router::new().route("/", post(read_and_write))),
        Kind::Sluicegate | Kind::SluicegateRedis | Kind::Like | Kind::LikeRedis => {
            serve_sluicegate(kind, Server::grpc)
        }
        Kind::Check | Kind::Json | Kind::JsonLike | Kind::Take => {
            serve_sluicegate(kind, Server::http)
        }
    }
}

/// The limits: none refuses while something is measured.
const ENVOY: &str = "\
domain: edge
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 4000000000 }
";

const RULES: &str = r#"
[[rules]]
name = "take"
key = { claim = "user" }
limits = ["1000000000/d"]
when = { path = "/api/x" }
"#;

const CHECK_RULES: &str = r#"
[[rules]]
name = "check"
key = { header = "x-user" }
limits = ["1000000000/d"]
when = { path = "/api/x" }
"#;

const DEADLINE: Duration = Duration::from_secs(10);

fn serve_sluicegate(
    kind: Kind,
    port: fn(Server, SocketAddr) -> Server,
) -> Result<(), Box<dyn Error>> {
    let directory = env::temp_dir().join(format!("sluicegate-bench-{}", process::id()));
    fs::create_dir_all(&directory)?;
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map(|()| path)
    };
    let policies = match kind {
        Kind::Check => Policies::new().rules(write("rules.toml", CHECK_RULES)?)?,
        Kind::Take => Policies::new().rules(write("rules.toml", RULES)?)?,
        _ => Policies::new().envoy(write("envoy.yaml", ENVOY)?)?,
    };
    fs::remove_dir_all(&directory)?;
    services::runtime().block_on(async {
        // Before the service, so that it counts what it does, as the command does.
        let metrics = Metrics::install()?;
        // A machine that is busy with something else would not have answered within the usual 15 ms.
        let mut service = Service::builder(policies).deadline(DEADLINE);
        if matches!(kind, Kind::Like | Kind::LikeRedis | Kind::JsonLike) {
            // As `serve --like envoy-ratelimit` has it.
            service = service.apart(true).statistics(0.8);
        }
        if matches!(kind, Kind::SluicegateRedis | Kind::LikeRedis) {
            let url = env::args().nth(2).ok_or("no URL of a Redis")?;
            let store = sluicegate_redis::Redis::builder()
                .url(&url)
                .prefix(&format!("{kind:?}:"))
                .deadline(DEADLINE)
                .build()?;
            answers(&store).await?;
            service = service.store(store);
        }
        let server = Server::new(service.build()?).metrics(&metrics);
        let bound = port(server, (Ipv4Addr::LOCALHOST, 0).into()).bind().await?;
        let addresses = bound.addresses();
        announce(addresses.grpc.or(addresses.http).ok_or("no port")?)?;
        bound.run(std::future::pending()).await;
        Ok(())
    })
}

/// Waits until a store has a connection and its server knows the script of such limits. The calls that come first would have
/// to wait for both, on a core that the two servers share, and are to be answered within 15 ms.
async fn answers(store: &impl Store) -> Result<(), Box<dyn Error>> {
    let limit: Limit = "fixed 4000000000/day named first carried".parse()?;
    let charge = Charge::of(limit, KeyBuf::of("first"), 1);
    loop {
        let outcome = match store.take(&charge) {
            Answer::Now(outcome) => outcome,
            Answer::Later(future) => future.await,
        };
        if outcome.is_ok() {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
}

fn serve_tonic(service: impl RateLimitService) -> Result<(), Box<dyn Error>> {
    services::runtime().block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        announce(listener.local_addr()?)?;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let server = tonic::transport::Server::builder();
        let mut server = server.max_concurrent_streams(1_024);
        let service = RateLimitServiceServer::new(service);
        Ok(server.add_service(service).serve_with_incoming(incoming).await?)
    })
}

fn serve_axum(router: Router) -> Result<(), Box<dyn Error>> {
    services::runtime().block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        announce(listener.local_addr()?)?;
        Ok(axum::serve(listener, router).await?)
    })
}

/// Reads a body in JSON, and answers in JSON.
async fn read_and_write(body: Bytes) -> Json<Value> {
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    Json(serde_json::json!({ "overallCode": if asked.is_object() { "OK" } else { "UNKNOWN" } }))
}

/// It has no port of its own choice, so it gets one that was free a moment ago.
fn serve_throttlecrab() -> Result<(), Box<dyn Error>> {
    let program = env::args().nth(2).ok_or("no path of throttlecrab-server")?;
    let address = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let mut command = Command::new(program);
    command.args(["--grpc", "--grpc-host", "127.0.0.1", "--grpc-port"]);
    command.arg(address.port().to_string()).args(["--log-level", "warn"]);
    let mut running = command.stdout(process::Stdio::null()).spawn()?;
    while std::net::TcpStream::connect(address).is_err() {
        if let Some(ended) = running.try_wait()? {
            return Err(format!("throttlecrab-server ended: {ended}").into());
        }
        std::thread::yield_now();
    }
    announce(address)?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    running.kill()?;
    running.wait()?;
    Ok(())
}
