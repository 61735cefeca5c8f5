//! Two processes that share one limit through Redis, and half each of it while Redis is away.
//!
//!     cargo run --example redis
//!
//! It uses the Redis at $REDIS_URL or at 127.0.0.1:6379, and starts `redis-server` if none answers there. The
//! second process is this program once more. Both get some requests, and go on serving until Ctrl-C.

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use sluicegate_axum::store::{Fallback, Fleet, Share};
use sluicegate_axum::{Ip, Limit, Memory, RateLimitLayer};
use sluicegate_examples::RedisServer;
use sluicegate_redis::Redis;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

type Failure = Box<dyn Error + Send + Sync>;

// For each address, in both processes together.
const LIMIT: Limit = Limit::sliding_log(10, Duration::from_secs(10));

fn store(url: &str, prefix: &str) -> Result<Fallback<Redis, Share>, Failure> {
    let redis = Redis::builder()
        .url(url)
        .prefix(prefix)
        // Time enough for a distant server or a busy machine. The default is 50 ms.
        .deadline(Duration::from_millis(500))
        .build()?;
    // Each of the two processes then admits one half of every limit, so that together they do not exceed it.
    Ok(Fallback(redis, Share::new(Memory::new(), &Fleet::fixed(1, 2))))
}

async fn serve(
    listener: TcpListener,
    name: &'static str,
    store: Fallback<Redis, Share>,
) -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(move || async move { format!("Hello from the {name} process!\n") }))
        .layer(RateLimitLayer::new(LIMIT.by(Ip::peer())).store(store));
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
}

#[tokio::main]
async fn main() -> ExitCode {
    let end = match env::var(SECOND) {
        Ok(prefix) => second(&prefix).await,
        Err(_) => tokio::select! {
            end = first() => end,
            // The second process ends with the first one.
            () = sluicegate_examples::ended() => Ok(()),
        },
    };
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn first() -> Result<(), Failure> {
    let (listener, url) = sluicegate_examples::listen().await;
    let redis = RedisServer::find_or_start().await?;
    // A prefix of this run: what an earlier run spent does not count.
    let prefix = format!("sluicegate-example-{}:", std::process::id());
    let (_process, other) = start_second(redis.url(), &prefix).await?;
    let serving = tokio::spawn(serve(listener, "first", store(redis.url(), &prefix)?));

    send_some(&url, &other).await?;
    let port = |url: &str| url.rsplit(':').next().unwrap_or_default().to_owned();
    println!(
        "
Both go on serving, ten requests in ten seconds for each address:

    curl -i {url}/
    curl -i {other}/
    curl -s -o /dev/null -w '%{{url}} %{{http_code}}\\n' 'http://127.0.0.1:{{{},{}}}/?[1-8]'",
        port(&url),
        port(&other),
    );
    if let Some(id) = redis.id() {
        println!("\nWithout Redis, each admits five on its own:\n\n    kill {id}");
    }
    println!("\nCtrl-C ends this.");
    Ok(serving.await??)
}

/// Sends twice as many requests to the first process as to the second. Two limits of five would refuse more.
async fn send_some(first: &str, second: &str) -> Result<(), Failure> {
    let http = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let mut admitted = [0, 0];
    println!("\nFifteen requests, of which ten are to be admitted:\n");
    for number in 1..=15 {
        let to = usize::from(number % 3 == 0);
        let response = http.get([first, second][to].parse()?).await?;
        admitted[to] += u32::from(response.status().is_success());
        println!("{number:6}  {:6}  {}", ["first", "second"][to], response.status());
    }
    let [by_first, by_second] = admitted;
    let together = by_first + by_second;
    println!(
        "\nAdmitted by the first: {by_first}, by the second: {by_second}, together: {together}."
    );
    Ok(())
}

/// The variable that makes this program the second process. Its value is the prefix.
const SECOND: &str = "SLUICEGATE_EXAMPLE_PREFIX";

/// Starts the second process, and returns it with its URL.
async fn start_second(redis: &str, prefix: &str) -> Result<(Child, String), Failure> {
    let mut command = Command::new(env::current_exe()?);
    command.env(SECOND, prefix).env("REDIS_URL", redis);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn()?;
    let output = process.stdout.take().expect("it is a pipe");
    let url = BufReader::new(output).lines().next_line().await?;
    Ok((process, url.ok_or("the second process has not started")?))
}

/// Prints its URL for the first process, and serves until that process ends.
async fn second(prefix: &str) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let store = store(&env::var("REDIS_URL")?, prefix)?;
    println!("http://{}", listener.local_addr()?);
    let (mut first, mut nowhere) = (tokio::io::stdin(), tokio::io::sink());
    tokio::select! {
        end = serve(listener, "second", store) => Ok(end?),
        // The other end of this pipe is closed when the first process ends.
        end = tokio::io::copy(&mut first, &mut nowhere) => Ok(end.map(drop)?),
    }
}
