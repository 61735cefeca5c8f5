//! Clients of four classes that send more than a real server can answer, whether it answers or not.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use http::header::HOST;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::cores::Cores;
use super::serve::{CHEAP, DEAR, Kind, PATIENCE};
use super::server::Server;
use crate::services;

/// The classes, and how many of a hundred requests are of each.
pub const CLASSES: [(&str, u64); 4] =
    [("CRITICAL_PLUS", 10), ("CRITICAL", 30), ("SHEDDABLE_PLUS", 30), ("SHEDDABLE", 30)];

/// Every fifth request is dear, on average.
const DEAR_ONE_IN: u64 = 5;

/// Connections that rest, ready for the next request.
type Idle = Rc<RefCell<Vec<SendRequest<Empty<Bytes>>>>>;

/// Sends `load` times as much as one processor can answer, for `time`. Returns the part of each class's requests that was
/// answered in time.
///
/// # Errors
///
/// If the server does not start.
pub fn goodput(
    kind: Kind,
    cores: Option<Cores>,
    load: f64,
    time: Duration,
) -> io::Result<[f64; CLASSES.len()]> {
    let server = Server::start(&[&kind.argument()], cores)?;
    let runtime = services::runtime();
    let local = LocalSet::new();
    Ok(local.block_on(&runtime, send(server.address, load, time)))
}

/// Requests come at an even pace, in an order without a pattern.
async fn send(server: SocketAddr, load: f64, time: Duration) -> [f64; CLASSES.len()] {
    let mean = (CHEAP * (DEAR_ONE_IN as u32 - 1) + DEAR) / DEAR_ONE_IN as u32;
    let gap = mean.div_f64(load);
    let idle = Idle::default();
    let answered: Rc<[Cell<u64>; CLASSES.len()]> = Rc::default();
    let mut sent = [0_u64; CLASSES.len()];
    let start = tokio::time::Instant::now();
    let mut random = 0x5EED_u64;
    for number in 0.. {
        let due = start + gap * number;
        if due > start + time {
            break;
        }
        sleep_until(due).await;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let class = class((random >> 33) % 100);
        let path = if (random >> 48).is_multiple_of(DEAR_ONE_IN) { "/dear" } else { "/cheap" };
        sent[class] += 1;
        let (idle, answered) = (Rc::clone(&idle), Rc::clone(&answered));
        tokio::task::spawn_local(async move {
            // Cut short, the connection is closed: the client has gone.
            let served = timeout(PATIENCE, ask(server, &idle, path, class)).await;
            if matches!(served, Ok(Ok(200))) {
                answered[class].set(answered[class].get() + 1);
            }
        });
    }
    sleep(PATIENCE).await;
    std::array::from_fn(|class| answered[class].get() as f64 / sent[class].max(1) as f64)
}

async fn ask(server: SocketAddr, idle: &Idle, path: &str, class: usize) -> io::Result<u16> {
    let rested = idle.borrow_mut().pop();
    let mut requests = match rested.filter(|requests| !requests.is_closed()) {
        Some(requests) => requests,
        None => open(server).await?,
    };
    requests.ready().await.map_err(io::Error::other)?;
    let request = Request::get(path)
        .header(HOST, "localhost")
        .header("x-class", HeaderValue::from_static(CLASSES[class].0))
        .body(Empty::new())
        .map_err(io::Error::other)?;
    let mut response = requests.send_request(request).await.map_err(io::Error::other)?;
    while let Some(frame) = response.frame().await {
        frame.map_err(io::Error::other)?;
    }
    idle.borrow_mut().push(requests);
    Ok(response.status().as_u16())
}

async fn open(server: SocketAddr) -> io::Result<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    let (requests, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // Its end shows in the requests.
    tokio::task::spawn_local(connection);
    Ok(requests)
}

/// The class of a number below a hundred.
fn class(mut number: u64) -> usize {
    let is_in = |(_, share): &(&str, u64)| {
        let is_in = number < *share;
        number = number.saturating_sub(*share);
        is_in
    };
    CLASSES.iter().position(is_in).unwrap_or(0)
}
