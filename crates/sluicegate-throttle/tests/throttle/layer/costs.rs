use std::task::ready;

use http_body::Frame;
use http_body_util::BodyExt;
use sluicegate::Cost;
use sluicegate::key::Path;
use sluicegate_throttle::Class;
use sluicegate_throttle::layer::class_when;

use super::*;

/// Handlers keep the processor busy, and a queue holds what they do in 100 ms.
fn measured(clock: &ManualClock) -> ThrottleBuilder {
    Throttle::builder().cpu(1.0).queue_cost(100_000).clock(clock)
}

/// Works for 5 ms until its head is there, and for 2 ms in each of three frames.
#[derive(Clone)]
struct Working(ManualClock, Option<Cost>);

struct Frames(ManualClock, usize);

impl Service<Request<String>> for Working {
    type Response = Response<Frames>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        let Self(clock, cost) = self.clone();
        Box::pin(async move {
            clock.advance(Duration::from_millis(3));
            tokio::task::yield_now().await;
            clock.advance(Duration::from_millis(2));
            let mut response = Response::new(Frames(clock, 3));
            cost.map(|cost| response.extensions_mut().insert(cost));
            Ok(response)
        })
    }
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let left = ready!(Poll::Ready(self.1.checked_sub(1)));
        let Some(left) = left else { return Poll::Ready(None) };
        self.1 = left;
        self.0.advance(Duration::from_millis(2));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"frame")))))
    }
}

async fn cost_of(clock: &ManualClock, throttle: &Throttle, cost: Option<Cost>) -> u64 {
    let before = throttle.snapshot().actual_cost;
    let layer = throttle.layer().predict_by(Path);
    let mut service = layer.layer(Working(clock.clone(), cost));
    let response = service.call(get("/work")).await.unwrap();
    // Time in which nobody polls is not the request's.
    clock.advance(Duration::from_secs(1));
    assert_eq!(throttle.snapshot().running, 1);
    response.into_body().collect().await.unwrap();
    assert_eq!(throttle.snapshot().running, 0);
    // The thread rests, so the next request starts at once.
    clock.advance(Duration::from_millis(1));
    throttle.snapshot().actual_cost - before
}

/// A second passes between its head and its body.
#[tokio::test]
async fn where_places_are_scarce_a_request_costs_the_time_for_which_it_holds_one() {
    for reported in [None, Some(Cost(70))] {
        let clock = ManualClock::new();
        let throttle = one_at_a_time(&clock).queue_cost(10_000_000).build().unwrap();
        assert_eq!(cost_of(&clock, &throttle, reported).await, 1_011_000);
        let layer = throttle.layer().predict_by(Path);
        let mut service = layer.layer(Working(clock.clone(), None));
        let _running = service.call(get("/work"));
        let _queued = service.call(get("/work"));
        assert_eq!(throttle.snapshot().queued_cost, 1_011_000);
    }
}

#[tokio::test]
async fn an_outlier_is_expected_to_cost_what_the_queue_holds_and_not_more() {
    let clock = ManualClock::new();
    let throttle = one_at_a_time(&clock).build().unwrap();
    cost_of(&clock, &throttle, Some(Cost(1_000_000))).await;
    let mut service = throttle.layer().predict_by(Path).layer(Working(clock.clone(), None));
    let _running = service.call(get("/work"));
    let _queued = service.call(get("/work"));
    assert_eq!(throttle.snapshot().queued_cost, 4_000);
}

#[test]
fn a_request_that_was_too_slow_for_its_client_is_learnt() {
    let clock = ManualClock::new();
    let throttle = one_at_a_time(&clock).queue_cost(100_000).build().unwrap();
    let mut service = throttle.layer().predict_by(Path).layer(Working(clock.clone(), None));
    // It works for 3 ms, waits, and its client has gone.
    let mut request = Box::pin(service.call(get("/slow")));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(request.as_mut().poll(&mut cx).is_pending());
    drop(request);
    let _running = service.call(get("/slow"));
    let _queued = service.call(get("/slow"));
    assert_eq!(throttle.snapshot().queued_cost, 3_000);
}

#[tokio::test]
async fn an_unknown_request_of_the_lowest_class_is_expected_to_cost_what_others_of_it_do() {
    let clock = ManualClock::new();
    let throttle = measured(&clock).build().unwrap();
    let layer = throttle.layer().predict_by(Path).fair_by(Path);
    let layer = layer.criticality(class_when(Path.matches("/critical"), Class::CRITICAL_PLUS));
    for (path, cost) in [("/critical", 9_000), ("/lowest", 70)] {
        let mut service = layer.layer(Working(clock.clone(), Some(Cost(cost))));
        let response = service.call(get(path)).await.unwrap();
        response.into_body().collect().await.unwrap();
        clock.advance(Duration::from_secs(1));
    }
    let mut service = layer.layer(Working(clock.clone(), None));
    let _running = service.call(get("/lowest"));
    let _queued = service.call(get("/unknown"));
    assert_eq!(throttle.snapshot().queued_cost, 70);
}
