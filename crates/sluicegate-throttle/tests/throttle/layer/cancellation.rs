//! Requests that are dropped after any number of polls, on an executor that polls only what was woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use http_body::Frame;
use http_body_util::BodyExt;
use proptest::prelude::*;
use sluicegate_throttle::Class;
use sluicegate_throttle::layer::class_fn;

use super::*;

#[derive(Debug, Clone)]
struct Sent {
    rank: u8,
    /// How often its handler and its body wait, each.
    steps: usize,
    /// After so many polls its client has gone.
    leaves: Option<usize>,
}

fn sent() -> impl Strategy<Value = Sent> {
    (0..4_u8, 0..3_usize, proptest::option::of(0..8_usize)).prop_map(|(rank, steps, leaves)| Sent {
        rank,
        steps,
        leaves,
    })
}

/// Waits once, and is woken at once.
async fn wait_once() {
    let mut has_waited = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Frames, before each of which it waits once.
struct Slow {
    left: usize,
    is_ready: bool,
}

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if !std::mem::replace(&mut self.is_ready, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        (self.left, self.is_ready) = (self.left - 1, false);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"frame")))))
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    future: Pin<Box<dyn Future<Output = u16>>>,
    woken: Arc<Woken>,
    polls: usize,
    leaves: Option<usize>,
}

impl Task {
    fn new(future: Pin<Box<dyn Future<Output = u16>>>, leaves: Option<usize>) -> Self {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        Self { future, woken, polls: 0, leaves }
    }

    fn has_left(&self) -> bool {
        self.leaves.is_some_and(|leaves| self.polls >= leaves)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn a_request_that_leaves_at_any_poll_holds_nothing_and_keeps_no_other_waiting(
        requests in proptest::collection::vec(sent(), 1..20),
        in_flight in 1..4_usize,
        queue in 1_000..10_000_u64,
    ) {
        let clock = ManualClock::new();
        let builder = Throttle::builder().in_flight(in_flight).queue_cost(queue).clock(&clock);
        let throttle = builder.build().unwrap();
        let class = class_fn(|request: &Request<Sent>| Class::at(request.body().rank));
        let service = tower::service_fn(|request: Request<Sent>| async move {
            let left = request.body().steps;
            for _ in 0..left {
                wait_once().await;
            }
            Ok::<_, Infallible>(Response::new(Slow { left, is_ready: false }))
        });
        let layer = throttle.layer().criticality(class);
        let mut tasks = Vec::new();
        for request in &requests {
            let response = layer.layer(service).call(Request::new(request.clone()));
            let whole = async {
                let response = response.await.unwrap();
                let status = response.status().as_u16();
                response.into_body().collect().await.unwrap();
                status
            };
            tasks.push(Task::new(Box::pin(whole), request.leaves));
        }
        let (mut served, mut shed, mut left) = (0, 0, 0);
        while !tasks.is_empty() {
            let before = tasks.len();
            tasks.retain(|task| !task.has_left());
            left += before - tasks.len();
            let mut has_polled = false;
            let mut ended = Vec::new();
            for (at, task) in tasks.iter_mut().enumerate() {
                if !task.woken.0.swap(false, Ordering::Relaxed) {
                    continue;
                }
                has_polled = true;
                task.polls += 1;
                let waker = Waker::from(Arc::clone(&task.woken));
                if let Poll::Ready(status) = task.future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    prop_assert!(status == 200 || status == 503);
                    served += usize::from(status == 200);
                    shed += usize::from(status == 503);
                    ended.push(at);
                }
            }
            for at in ended.into_iter().rev() {
                tasks.swap_remove(at);
            }
            prop_assert!(has_polled || before > tasks.len() || tasks.is_empty(), "all of them wait");
            prop_assert!(throttle.snapshot().running <= in_flight);
        }
        prop_assert_eq!(served + shed + left, requests.len());
        let snapshot = throttle.snapshot();
        prop_assert_eq!((snapshot.queued, snapshot.queued_cost, snapshot.running), (0, 0, 0));
    }
}
