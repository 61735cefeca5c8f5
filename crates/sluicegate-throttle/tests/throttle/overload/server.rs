//! A server of one thread behind a throttle, and its clients, on a manual clock. The layer, the timers of the throttle and
//! the handlers are the real ones; only time is turned by hand.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use sluicegate::ManualClock;
use sluicegate::key::Path;
use sluicegate_throttle::layer::class_when;
use sluicegate_throttle::{Class, Throttle};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, LocalSet, spawn_local, yield_now};
use tower::{Layer, Service};

/// How far the clock is moved at a time.
const STEP: Duration = Duration::from_millis(1);

/// What a handler does before its response has ended.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// It waits.
    Sleep(Duration),
    /// It waits for one of the places of something behind it, and then holds that for a time.
    Pool(Arc<Semaphore>, Duration),
    /// It keeps the thread busy.
    Compute(Duration),
    /// It answers at once, with a body of four frames that takes so long together.
    Stream(Duration),
}

/// Handlers: what they do may depend on the time since the start and on the number of the request.
type Handlers = Rc<dyn Fn(Duration, u64) -> Work>;

/// What clients send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Requests in a second, evenly spaced.
    pub(crate) per_second: u64,
    /// For how long.
    pub(crate) time: Duration,
    /// When clients leave.
    pub(crate) patience: Duration,
    /// In percent, by class.
    pub(crate) classes: [u64; 4],
    /// What it takes to read a request, before the throttle sees it.
    pub(crate) reading: Duration,
}

impl Load {
    /// Requests of the lowest class, for three seconds, of clients that leave after half a second.
    pub(crate) const fn new(per_second: u64) -> Self {
        let (time, patience) = (Duration::from_secs(3), Duration::from_millis(500));
        let reading = Duration::ZERO;
        Self { per_second, time, patience, classes: [0, 0, 0, 100], reading }
    }
}

/// What became of the requests.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// How long each answered request took, since its client sent it, by class.
    pub(crate) answered: [Vec<Duration>; 4],
    pub(crate) refused: usize,
    /// The longest wait until a request was started or refused, since its client sent it.
    pub(crate) longest_wait: Duration,
    pub(crate) sent: [u64; 4],
    /// When the last response had ended.
    pub(crate) end: Duration,
}

impl Report {
    /// All answers that came before their clients left.
    pub(crate) fn in_time(&self) -> usize {
        self.answered.iter().map(Vec::len).sum()
    }
}

/// Sends `load` to `handlers` behind `throttle`, and waits until everything is answered or has left.
pub(crate) fn run(
    clock: &ManualClock,
    throttle: &Throttle,
    load: Load,
    handlers: impl Fn(Duration, u64) -> Work + 'static,
) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let handlers: Handlers = Rc::new(handlers);
    LocalSet::new().block_on(&runtime, send(clock.clone(), throttle.clone(), load, handlers))
}

async fn send(clock: ManualClock, throttle: Throttle, load: Load, handlers: Handlers) -> Report {
    let classes = class_when(Path.matches("/0"), Class::CRITICAL_PLUS).otherwise(
        class_when(Path.matches("/1"), Class::CRITICAL).otherwise(
            class_when(Path.matches("/2"), Class::SHEDDABLE_PLUS).otherwise(Class::SHEDDABLE),
        ),
    );
    let start = clock.now();
    let report = Rc::new(RefCell::new(Report::default()));
    let (number, seen) = (Rc::default(), Rc::clone(&report));
    let inner = Server { clock: clock.clone(), start, number, handlers, report: seen };
    let service = throttle.layer().criticality(classes).layer(inner);
    let mut clients = VecDeque::<(u64, AbortHandle)>::new();
    let (gap, time) = (1_000_000.0 / load.per_second as f64, load.time.as_micros() as u64);
    let mut number = 0;
    'time: loop {
        let due = (gap * number as f64) as u64;
        if due < time && start + due <= clock.now() {
            let class = class_of(number, load.classes);
            report.borrow_mut().sent[class] += 1;
            let request = Request::get(format!("/{class}")).extension(Sent(start + due));
            let request = request.body(String::new()).unwrap();
            let (mut service, report, clock) = (service.clone(), Rc::clone(&report), clock.clone());
            let client = spawn_local(async move {
                clock.advance(load.reading);
                let response = service.call(request).await.unwrap_or_else(|never| match never {});
                let status = response.status();
                response.into_body().collect().await.unwrap_or_else(|never| match never {});
                let (took, mut report) = (clock.now() - start - due, report.borrow_mut());
                let took = Duration::from_micros(took);
                match status.as_u16() {
                    200 if took <= load.patience => report.answered[class].push(took),
                    200 => {}
                    503 => {
                        report.refused += 1;
                        report.longest_wait = report.longest_wait.max(took);
                    }
                    other => panic!("{other}"),
                }
                report.end = Duration::from_micros(clock.now() - start);
            });
            let leaves = start + due + load.patience.as_micros() as u64;
            clients.push_back((leaves, client.abort_handle()));
            number += 1;
            continue;
        }
        while let Some((leaves, client)) = clients.front() {
            if *leaves > clock.now() && !client.is_finished() {
                break;
            }
            client.abort();
            clients.pop_front();
        }
        // What is woken wakes others: a handler its client, a place in the queue the next handler. If a handler has
        // kept the thread busy meanwhile, others may have come.
        let before = clock.now();
        for _ in 0..8 {
            yield_now().await;
            if clock.now() != before {
                continue 'time;
            }
        }
        if due >= time && clients.iter().all(|(_, client)| client.is_finished()) {
            break;
        }
        clock.advance(STEP);
    }
    report.take()
}

/// The classes come in an order without a pattern, each as often as `percent` says.
fn class_of(number: u64, percent: [u64; 4]) -> usize {
    let mut place = number.wrapping_mul(37) % 100;
    let is_in = |share: &u64| {
        let is_in = place < *share;
        place = place.saturating_sub(*share);
        is_in
    };
    percent.iter().position(is_in).unwrap_or(3)
}

/// When a request was sent.
#[derive(Debug, Clone, Copy)]
struct Sent(u64);

#[derive(Clone)]
struct Server {
    clock: ManualClock,
    start: u64,
    number: Rc<RefCell<u64>>,
    handlers: Handlers,
    report: Rc<RefCell<Report>>,
}

impl Service<Request<String>> for Server {
    type Response = Response<Frames>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let clock = self.clock.clone();
        let Sent(sent) = request.extensions().get().copied().unwrap();
        let (waited, mut report) =
            (Duration::from_micros(clock.now() - sent), self.report.borrow_mut());
        report.longest_wait = report.longest_wait.max(waited);
        drop(report);
        let number = self.number.replace_with(|number| *number + 1);
        let since = Duration::from_micros(clock.now() - self.start);
        let work = (self.handlers)(since, number);
        Box::pin(async move {
            let mut frames = Frames { clock, left: 0, pause: Duration::ZERO, until: None };
            match work {
                Work::Sleep(time) => sleep(&frames.clock, time).await,
                Work::Pool(pool, time) => {
                    let _place = pool.acquire().await.unwrap();
                    sleep(&frames.clock, time).await;
                }
                Work::Compute(time) => frames.clock.advance(time),
                Work::Stream(time) => (frames.left, frames.pause) = (4, time / 4),
            }
            Ok(Response::new(frames))
        })
    }
}

async fn sleep(clock: &ManualClock, time: Duration) {
    let until = clock.now() + time.as_micros() as u64;
    poll_fn(|cx| clock.poll_reached(until, cx)).await;
}

/// A body that waits before each of its frames.
struct Frames {
    clock: ManualClock,
    left: usize,
    pause: Duration,
    until: Option<u64>,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let next = self.clock.now() + self.pause.as_micros() as u64;
        let until = *self.until.get_or_insert(next);
        std::task::ready!(self.clock.poll_reached(until, cx));
        self.until = None;
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"frame")))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}
