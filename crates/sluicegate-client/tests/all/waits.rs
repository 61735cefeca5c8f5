//! One bound for all waits of a call, in every order of layers; and what the caller gets when the next attempt is held back.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use sluicegate::{Global, Limit, ManualClock, Memory};
use sluicegate_client::pace::{Pacer, Patience};
use sluicegate_client::retry::{Budget, RetryBuilder};
use sluicegate_client::smooth::Stored;
use sluicegate_client::{
    AdaptiveThrottleLayer, BoxError, ObeyLayer, Outgoing, PaceLayer, Refused, RetryLayer,
    SmoothLayer,
};
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

/// A status, and `Retry-After` in seconds. With 0 the connection breaks, with 1 there is no answer.
type Answer = (u16, Option<&'static str>);

/// A server that answers as it is told, else with 200.
#[derive(Clone)]
struct Server {
    clock: ManualClock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    /// When requests came, in milliseconds.
    came: Vec<u64>,
    /// What the last one stated in `grpc-timeout`.
    stated: Option<String>,
}

impl Server {
    fn new(answers: &[Answer]) -> Self {
        let state = State { answers: answers.iter().copied().collect(), ..State::default() };
        Self { clock: ManualClock::at(Duration::ZERO), state: Arc::new(Mutex::new(state)) }
    }

    fn came(&self) -> Vec<u64> {
        self.state.lock().unwrap().came.clone()
    }

    /// Sends a request through `service`: the status or whether it was held back, and when that was known.
    async fn call<S>(&self, service: &S, request: Request<()>) -> (Result<u16, bool>, u64)
    where
        S: Service<Request<()>, Response = Response<()>, Error: Into<BoxError>, Future: Send>,
        S: Clone + Send + 'static,
    {
        let mut service = service.clone();
        let call = tokio::spawn(async move {
            let Ok(ready) = service.ready().await else { panic!("it is ready") };
            match ready.call(request).await.map_err(Into::into) {
                Ok(response) => Ok(response.status().as_u16()),
                Err(error) => Err(Refused::find(&*error).is_some()),
            }
        });
        settle().await;
        while !call.is_finished() {
            assert!(self.clock.now() < 600_000_000, "a call hangs");
            self.clock.advance(Duration::from_millis(5));
            settle().await;
        }
        (call.await.unwrap(), self.clock.now() / 1_000)
    }
}

async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

impl Service<Request<()>> for Server {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<()>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let mut state = self.state.lock().unwrap();
        state.came.push(self.clock.now() / 1_000);
        let stated = request.headers().get("grpc-timeout");
        state.stated = stated.map(|stated| stated.to_str().unwrap().to_owned());
        let (status, wait) = state.answers.pop_front().unwrap_or((200, None));
        Box::pin(async move {
            if status == 1 {
                std::future::pending::<()>().await;
            }
            if status == 0 {
                return Err("connection reset".into());
            }
            let mut response = Response::builder().status(status);
            if let Some(wait) = wait {
                response = response.header("retry-after", wait);
            }
            Ok(response.body(()).unwrap())
        })
    }
}

fn put() -> Request<()> {
    Request::put("http://server/").body(()).unwrap()
}

fn retry(clock: &ManualClock) -> RetryBuilder {
    RetryLayer::builder().clock(clock)
}

fn obey(clock: &ManualClock, wait: u64) -> ObeyLayer {
    ObeyLayer::builder().wait(Duration::from_secs(wait)).clock(clock).build().unwrap()
}

fn throttle(clock: &ManualClock) -> AdaptiveThrottleLayer {
    AdaptiveThrottleLayer::builder().clock(clock).build().unwrap()
}

fn pace(clock: &ManualClock, limit: Limit, patience: Patience) -> PaceLayer {
    let memory = Memory::builder().capacity(100).clock(clock).build();
    PaceLayer::new(Global, Pacer::counted_in(memory, limit).patience(patience))
}

fn outgoing(clock: &ManualClock, wait: u64) -> Outgoing {
    Outgoing::new()
        .retry(retry(clock).build().unwrap())
        .throttle(throttle(clock))
        .obey(obey(clock, wait))
}

#[tokio::test]
async fn what_obeying_may_wait_for_bounds_the_whole_call() {
    for wait in [0, 1, 5, 14] {
        let server = Server::new(&[(503, Some("15")), (503, Some("15"))]);
        let service = outgoing(&server.clock, wait).layer(server.clone());
        assert_eq!(server.call(&service, put()).await, (Ok(503), 0), "{wait}");
        assert_eq!(server.came(), [0]);
    }
}

#[tokio::test]
async fn a_wait_that_fits_is_waited() {
    let server = Server::new(&[(503, Some("2"))]);
    let service = outgoing(&server.clock, 5).layer(server.clone());
    let (result, at) = server.call(&service, put()).await;
    assert_eq!(result, Ok(200));
    assert!((2_000..=2_500).contains(&at), "{at}");
    // Without a demand, an attempt follows also where nobody waits for servers.
    let server = Server::new(&[(503, None)]);
    let service = outgoing(&server.clock, 0).layer(server.clone());
    assert_eq!(server.call(&service, put()).await.0, Ok(200));
}

#[tokio::test]
async fn all_waits_together_have_one_bound() {
    // Each of the two fits alone.
    let server = Server::new(&[(503, Some("3")), (503, Some("3"))]);
    let service = outgoing(&server.clock, 5).layer(server.clone());
    let (result, at) = server.call(&service, put()).await;
    assert_eq!(result, Ok(503));
    assert!((3_000..=3_500).contains(&at), "{at}");
    assert_eq!(server.came().len(), 2);
}

#[tokio::test]
async fn the_order_of_layers_changes_no_bound() {
    let busy = [(503, Some("15")); 3];
    macro_rules! ends_at_once {
        ($clock:ident => $($layer:expr),+) => {{
            let server = Server::new(&busy);
            let $clock = &server.clock;
            let service = ServiceBuilder::new()$(.layer($layer))+.service(server.clone());
            let layers = stringify!($($layer),+);
            assert_eq!(server.call(&service, put()).await, (Ok(503), 0), "{layers}");
            assert_eq!(server.came(), [0], "{layers}");
        }};
    }
    let second = Patience::AtMost(Duration::from_secs(1));
    let smooth = |clock: &ManualClock| {
        let method = Stored::bursty(1_000.0, Duration::from_secs(1)).unwrap();
        SmoothLayer::builder(method).patience(second).clock(clock).build().unwrap()
    };
    ends_at_once!(clock => retry(clock).build().unwrap(), obey(clock, 5));
    ends_at_once!(clock => obey(clock, 5), retry(clock).build().unwrap());
    ends_at_once!(clock => obey(clock, 30), retry(clock).build().unwrap(), obey(clock, 5));
    ends_at_once!(clock => retry(clock).build().unwrap(), throttle(clock), obey(clock, 5));
    ends_at_once!(clock => obey(clock, 5), throttle(clock), retry(clock).build().unwrap());
    ends_at_once!(clock => retry(clock).longest_wait(Duration::from_secs(14)).build().unwrap(), obey(clock, 30));
    ends_at_once!(clock => retry(clock).build().unwrap(), pace(clock, Limit::per_second(9), second));
    ends_at_once!(clock => pace(clock, Limit::per_second(9), second), retry(clock).build().unwrap());
    ends_at_once!(clock => retry(clock).build().unwrap(), smooth(clock), obey(clock, 30));
    ends_at_once!(clock => smooth(clock), retry(clock).build().unwrap());
}

#[tokio::test]
async fn a_buffer_around_the_layers_or_below_them_hides_no_bound() {
    let busy = [(503, Some("15")); 3];
    let server = Server::new(&busy);
    let below = outgoing(&server.clock, 5).layer(Buffer::new(server.clone(), 8));
    assert_eq!(server.call(&below, put()).await, (Ok(503), 0));
    assert_eq!(server.came(), [0]);
    let server = Server::new(&busy);
    let around = Buffer::new(outgoing(&server.clock, 5).layer(server.clone()), 8);
    assert_eq!(server.call(&around, put()).await, (Ok(503), 0));
    assert_eq!(server.came(), [0]);
}

/// Layers around a client of one place, which each caller has made ready.
#[tokio::test]
async fn a_request_that_waits_is_sent_in_the_one_place_of_its_client() {
    macro_rules! sends_both {
        ($clock:ident, $answers:expr => $layer:expr) => {
            sends_both!($clock, $answers => $layer, |server| ConcurrencyLimit::new(server, 1));
            sends_both!($clock, $answers => $layer, |server| Buffer::new(server, 1));
        };
        ($clock:ident, $answers:expr => $layer:expr, $place:expr) => {{
            let server = Server::new($answers);
            let $clock = &server.clock;
            let service = $layer.layer(($place)(server.clone()));
            for _ in 0..2 {
                let layer = stringify!($layer);
                assert!(server.call(&service, put()).await.0.is_ok(), "{layer}");
            }
        }};
    }
    let busy = [(503, Some("1"))];
    let second = || Stored::bursty(1.0, Duration::ZERO).unwrap();
    let each = || Limit::per_second(1).burst(1);
    sends_both!(clock, &busy => obey(clock, 5));
    sends_both!(clock, &busy => outgoing(clock, 5));
    sends_both!(clock, &[] => pace(clock, each(), Patience::UntilAdmitted));
    sends_both!(clock, &[] => SmoothLayer::builder(second()).clock(clock).build().unwrap());
    sends_both!(clock, &busy => outgoing(clock, 5).pace(pace(clock, each(), Patience::UntilAdmitted)));
}

#[tokio::test]
async fn a_request_that_waits_for_one_server_leaves_its_place_to_those_for_others() {
    let server = Server::new(&[(429, Some("4"))]);
    let service = obey(&server.clock, 5).layer(ConcurrencyLimit::new(server.clone(), 1));
    assert_eq!(server.call(&service, put()).await, (Ok(429), 0));
    let mut first = service.clone();
    let waiting = tokio::spawn(async move { first.ready().await?.call(put()).await });
    settle().await;
    let other = Request::put("http://other/").body(()).unwrap();
    assert_eq!(server.call(&service, other).await, (Ok(200), 0));
    assert!(!waiting.is_finished());
}

/// A layer that answers the first request itself, and does not use the place that was made ready.
#[tokio::test]
async fn a_request_that_is_sent_again_holds_no_place_meanwhile() {
    #[derive(Clone)]
    struct Maintained<S>(S, Arc<AtomicBool>);

    impl<S> Service<Request<()>> for Maintained<S>
    where
        S: Service<Request<()>, Response = Response<()>, Future: Send + 'static>,
    {
        type Response = Response<()>;
        type Error = S::Error;
        type Future = Pin<Box<dyn Future<Output = Result<Response<()>, S::Error>> + Send>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, request: Request<()>) -> Self::Future {
            match self.1.swap(true, Ordering::Relaxed) {
                true => Box::pin(self.0.call(request)),
                false => Box::pin(async { Ok(Response::builder().status(503).body(()).unwrap()) }),
            }
        }
    }

    let server = Server::new(&[]);
    let place = ConcurrencyLimit::new(server.clone(), 1);
    let service = retry(&server.clock).build().unwrap().layer(Maintained(place, Arc::default()));
    assert_eq!(server.call(&service, put()).await.0, Ok(200));
}

#[tokio::test]
async fn what_follows_redirects_around_the_layers_has_each_hop_obeyed() {
    let server = Server::new(&[(302, None), (503, Some("2"))]);
    let layers = outgoing(&server.clock, 5).layer(server.clone());
    let follow = tower::service_fn(move |request: Request<()>| {
        let mut layers = layers.clone();
        async move {
            let first = layers.ready().await?.call(request).await?;
            if first.status() != 302 {
                return Ok::<_, BoxError>(first);
            }
            let next = Request::put("http://other/").body(())?;
            layers.ready().await?.call(next).await
        }
    });
    let (result, at) = server.call(&follow, put()).await;
    assert_eq!(result, Ok(200));
    assert!((2_000..=2_500).contains(&at), "{at}");
    assert_eq!(server.came().len(), 3);
}

#[tokio::test]
async fn one_call_does_not_bound_the_next() {
    let server = Server::new(&[(503, Some("15")), (503, Some("3"))]);
    let service = retry(&server.clock).build().unwrap().layer(server.clone());
    let short = ServiceBuilder::new().layer(obey(&server.clock, 5)).service(service.clone());
    assert_eq!(server.call(&short, put()).await, (Ok(503), 0));
    assert_eq!(server.call(&service, put()).await.0, Ok(200));
}

#[tokio::test]
async fn a_turn_that_comes_after_the_deadline_ends_the_call_at_once() {
    let server = Server::new(&[]);
    let slow = || Limit::per_second(1).burst(1);
    let paced = pace(&server.clock, slow(), Patience::UntilAdmitted).layer(server.clone());
    let method = Stored::bursty(1.0, Duration::ZERO).unwrap();
    let smooth = SmoothLayer::builder(method).clock(&server.clock).build().unwrap();
    let smoothed = smooth.layer(server.clone());
    let hurried = || {
        let mut request = put();
        request.headers_mut().insert("grpc-timeout", "700m".parse().unwrap());
        request
    };
    assert_eq!(server.call(&paced, hurried()).await, (Ok(200), 0));
    assert_eq!(server.call(&paced, hurried()).await, (Err(true), 0));
    assert_eq!(server.call(&smoothed, hurried()).await, (Ok(200), 0));
    assert_eq!(server.call(&smoothed, hurried()).await, (Err(true), 0));
}

#[tokio::test]
async fn what_a_request_waits_is_taken_off_the_time_that_it_states() {
    let patient = || {
        let mut request = put();
        request.headers_mut().insert("grpc-timeout", "9000m".parse().unwrap());
        request
    };
    let stated = |server: &Server| server.state.lock().unwrap().stated.clone().unwrap();
    let server = Server::new(&[]);
    let limit = Limit::per_second(1).burst(1);
    let paced = pace(&server.clock, limit, Patience::UntilAdmitted).layer(server.clone());
    server.call(&paced, patient()).await.0.unwrap();
    assert_eq!(stated(&server), "9000m");
    server.call(&paced, patient()).await.0.unwrap();
    assert_eq!(stated(&server), "8000m");

    let server = Server::new(&[(429, Some("2"))]);
    let obeying = obey(&server.clock, 30).layer(server.clone());
    assert_eq!(server.call(&obeying, patient()).await.0, Ok(429));
    server.call(&obeying, patient()).await.0.unwrap();
    let left: u64 = stated(&server).strip_suffix('m').unwrap().parse().unwrap();
    assert!((6_700..=7_000).contains(&left), "{left}");
}

#[tokio::test]
async fn a_request_behind_others_that_cannot_be_sent_in_time_ends_at_once() {
    let server = Server::new(&[(429, Some("4"))]);
    let service = obey(&server.clock, 5).layer(server.clone());
    assert_eq!(server.call(&service, put()).await.0, Ok(429));
    let mut first = service.clone();
    let waiting = tokio::spawn(async move { first.ready().await?.call(put()).await });
    settle().await;
    let mut hurried = put();
    hurried.headers_mut().insert("grpc-timeout", "3S".parse().unwrap());
    assert_eq!(server.call(&service, hurried).await, (Err(true), 0));
    assert!(!waiting.is_finished());
}

/// What the caller gets when the second attempt is held back.
#[tokio::test]
async fn an_attempt_that_is_held_back_does_not_hide_the_one_that_was_sent() {
    for answer in [(503, None), (0, None), (429, Some("1"))] {
        let expected = if answer.0 == 0 { Err(false) } else { Ok(answer.0) };
        let server = Server::new(&[answer; 3]);
        let limit = || pace(&server.clock, Limit::per_hour(1), Patience::Not);
        let service = outgoing(&server.clock, 5).pace(limit()).layer(server.clone());
        assert_eq!(server.call(&service, put()).await.0, expected, "{answer:?}");
        assert_eq!(server.came().len(), 1);
    }
}

#[tokio::test]
async fn the_throttle_does_not_hide_what_was_sent() {
    let server = Server::new(&[(503, None); 1_000]);
    let service = outgoing(&server.clock, 5)
        .throttle(
            AdaptiveThrottleLayer::builder()
                .from(0)
                .at_most(1.0)
                .clock(&server.clock)
                .build()
                .unwrap(),
        )
        .layer(server.clone());
    let mut answered = 0;
    for _ in 0..200 {
        match server.call(&service, put()).await.0 {
            Ok(503) => answered += 1,
            Err(true) => {}
            other => panic!("{other:?}"),
        }
    }
    let repeated = server.came().len() - answered;
    // Each request that came has an answer, apart from those that were repeated.
    assert!(answered >= 1 && repeated <= 30, "{answered} {repeated}");
}

#[tokio::test]
async fn an_attempt_that_is_held_back_is_not_paid_for() {
    let server = Server::new(&[(503, None)]);
    let budget = Arc::new(Budget::try_new(1.0, 0).unwrap());
    let limit = pace(&server.clock, Limit::per_hour(1), Patience::Not);
    let layer = retry(&server.clock).budget(budget.clone()).build().unwrap();
    let service = layer.layer(limit.layer(server.clone()));
    assert_eq!(server.call(&service, put()).await.0, Ok(503));
    assert!(budget.withdraw() && !budget.withdraw());
}

#[tokio::test]
async fn a_caller_that_leaves_before_an_attempt_is_sent_has_not_paid_for_it() {
    for (limit, seconds, left) in [
        // It leaves during the back-off, while the attempt waits for its turn, and while the server works on it.
        (Limit::per_hour(9), 0, 1),
        (Limit::per_hour(1).burst(1), 60, 1),
        (Limit::per_hour(9), 60, 0),
    ] {
        let server = Server::new(&[(503, None), (1, None)]);
        let budget = Arc::new(Budget::try_new(1.0, 0).unwrap());
        let limit = pace(&server.clock, limit, Patience::UntilAdmitted);
        let layer = retry(&server.clock).budget(budget.clone()).build().unwrap();
        let call = tokio::spawn(layer.layer(limit.layer(server.clone())).oneshot(put()));
        settle().await;
        server.clock.advance(Duration::from_secs(seconds));
        settle().await;
        assert!(!call.is_finished() && !budget.withdraw());
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        assert_eq!((0..9).filter(|_| budget.withdraw()).count(), left, "{seconds}");
    }
}

#[tokio::test]
async fn a_403_that_says_when_to_come_back_is_waited_for() {
    let server = Server::new(&[(403, Some("2"))]);
    let service = outgoing(&server.clock, 5).layer(server.clone());
    let (result, at) = server.call(&service, put()).await;
    assert_eq!(result, Ok(200));
    assert!(at >= 2_000, "{at}");
    // Another 403 is an answer like others.
    let server = Server::new(&[(403, None)]);
    let service = outgoing(&server.clock, 5).layer(server.clone());
    assert_eq!(server.call(&service, put()).await, (Ok(403), 0));
}
