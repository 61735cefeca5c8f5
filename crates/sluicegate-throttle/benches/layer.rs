//! What the layer adds to a tower service while its queue is empty, measuring the time of polls included.
//!
//! `cargo bench -p sluicegate-throttle --bench layer`

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use sluicegate_throttle::Throttle;
use tower::{Layer, Service};

const ROUNDS: u32 = 200_000;
const TURNS: usize = 7;

fn main() {
    let second = Duration::from_secs(1);
    let bare = tower::service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    let in_flight = Throttle::builder().in_flight(100).queue(second).build().expect("it works");
    println!("median of {TURNS} turns, nanoseconds for each request");
    let floor = median(|| turn(bare));
    println!("bare service      {floor:>5}");
    let layer = in_flight.layer().predict_by(sluicegate::Global);
    let taken = median(|| turn(layer.layer(bare)));
    println!("with the layer    {taken:>5}, the layer {:>4}", taken - floor);
}

fn turn<S, B>(mut service: S) -> u64
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let mut cx = Context::from_waker(Waker::noop());
        let mut future = pin!(service.call(Request::new(())));
        let Poll::Ready(response) = future.as_mut().poll(&mut cx) else { panic!("it is idle") };
        let _ = black_box(response);
    }
    start.elapsed().as_nanos() as u64 / u64::from(ROUNDS)
}

fn median(turn: impl Fn() -> u64) -> u64 {
    let mut turns: Vec<_> = (0..TURNS).map(|_| turn()).collect();
    turns.sort_unstable();
    turns[TURNS / 2]
}
