use sluicegate_throttle::adaptive::Bandwidth;
use sluicegate_throttle::layer::HoldUntil;

use super::*;

#[test]
fn the_inner_service_is_not_made_ready_before_its_request_leaves_the_queue() {
    let (_clock, handlers, throttle) = scene();
    let mut first = send(&throttle, &handlers, "/1");
    let mut second = send(&throttle, &handlers, "/2");
    assert_waits(&mut first);
    assert_waits(&mut second);
    assert_eq!(handlers.0.borrow().asked, 1);
}

/// Not even `http_body::Body` is asked of the body.
#[test]
fn a_request_waits_whose_body_nobody_can_read() {
    struct Unread;

    let (_clock, handlers, throttle) = scene();
    let mut service = throttle.layer().layer(handlers.clone());
    let mut send = || -> Answering { Box::pin(service.call(Request::new(Unread))) };
    let (mut first, mut second) = (send(), send());
    assert_waits(&mut first);
    assert_waits(&mut second);
    handlers.answer_empty();
    assert_eq!(answered(&mut first).status(), 200);
    assert_waits(&mut second);
    assert_eq!(handlers.started().len(), 2);
}

#[test]
fn a_request_that_was_told_before_it_was_first_polled_starts() {
    let (_clock, handlers, throttle) = scene();
    let first = send(&throttle, &handlers, "/1");
    let mut second = send(&throttle, &handlers, "/2");
    assert_eq!(handlers.started(), ["/1"]);
    drop(first);
    assert_waits(&mut second);
    assert_eq!(handlers.started(), ["/1", "/2"]);
}

#[tokio::test]
async fn a_waiting_request_is_woken() {
    let (_clock, handlers, throttle) = scene();
    let tasks = tokio::task::LocalSet::new();
    tasks
        .run_until(async {
            let request = |path| tokio::task::spawn_local(send(&throttle, &handlers, path));
            let requests = ["/1", "/2", "/3"].map(request);
            for served in 0..3 {
                tokio::task::yield_now().await;
                while handlers.started().len() <= served {
                    tokio::task::yield_now().await;
                }
                handlers.answer_empty();
            }
            for request in requests {
                request.await.unwrap().unwrap();
            }
        })
        .await;
    assert_eq!(handlers.started(), ["/1", "/2", "/3"]);
}

#[tokio::test]
async fn a_rate_starts_requests_as_the_clock_moves() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let builder = Throttle::builder().requests_per_second(10).queue_cost(5).clock(&clock);
    let throttle = builder.build().unwrap();
    let mut requests = ["/1", "/2", "/3"].map(|path| send(&throttle, &handlers, path));
    requests.iter_mut().for_each(assert_waits);
    tokio::task::yield_now().await;
    assert_eq!(handlers.started(), ["/1"]);
    for started in 2..=3 {
        clock.advance(Duration::from_micros(99_999));
        tokio::task::yield_now().await;
        requests.iter_mut().for_each(assert_waits);
        assert_eq!(handlers.started().len(), started - 1);
        clock.advance(Duration::from_micros(1));
        tokio::task::yield_now().await;
        requests.iter_mut().for_each(assert_waits);
        assert_eq!(handlers.started().len(), started);
    }
}

#[tokio::test]
async fn a_rate_goes_on_at_once_when_a_request_was_cheaper_than_expected() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let builder = Throttle::builder().cost_per_second(1_000).first_cost(1_000).queue_cost(5_000);
    let throttle = builder.clock(&clock).build().unwrap();
    let mut requests = ["/1", "/2"].map(|path| send(&throttle, &handlers, path));
    requests.iter_mut().for_each(assert_waits);
    // The drainer sleeps for the second that the first one was expected to cost.
    tokio::task::yield_now().await;
    let mut cheap = Response::new(Full::default());
    cheap.extensions_mut().insert(sluicegate::Cost(10));
    handlers.answer(cheap);
    answered(&mut requests[0]);
    tokio::task::yield_now().await;
    clock.advance(Duration::from_millis(10));
    tokio::task::yield_now().await;
    assert_waits(&mut requests[1]);
    assert_eq!(handlers.started(), ["/1", "/2"]);
}

#[test]
fn requests_that_wait_for_a_rate_survive_the_end_of_another_runtime() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let builder = Throttle::builder().requests_per_second(10).queue_cost(5).clock(&clock);
    let throttle = builder.build().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut requests = runtime().block_on(async {
        let mut requests = ["/1", "/2"].map(|path| send(&throttle, &handlers, path));
        requests.iter_mut().for_each(assert_waits);
        tokio::task::yield_now().await;
        requests
    });
    // That runtime has ended, and its tasks with it.
    runtime().block_on(async {
        assert_waits(&mut requests[1]);
        tokio::task::yield_now().await;
        clock.advance(Duration::from_millis(100));
        tokio::task::yield_now().await;
        assert_waits(&mut requests[1]);
        assert_eq!(handlers.started(), ["/1", "/2"]);
    });
}

#[test]
fn requests_that_wait_for_a_rate_survive_a_runtime_that_is_not_driven() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let builder = Throttle::builder().requests_per_second(10).queue_cost(5).clock(&clock);
    let throttle = builder.build().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (held_up, other) = (runtime(), runtime());
    let mut requests = held_up.block_on(async {
        let mut requests = ["/1", "/2"].map(|path| send(&throttle, &handlers, path));
        requests.iter_mut().for_each(assert_waits);
        tokio::task::yield_now().await;
        requests
    });
    other.block_on(async {
        let mut third = send(&throttle, &handlers, "/3");
        assert_waits(&mut third);
        tokio::task::yield_now().await;
        for started in ["/2", "/3"] {
            clock.advance(Duration::from_millis(105));
            tokio::task::yield_now().await;
            assert_waits(&mut third);
            assert_waits(&mut requests[1]);
            assert_eq!(handlers.started().last().unwrap(), started);
        }
    });
}

/// A thread of its own takes the place of the timers.
#[test]
fn requests_wait_for_a_rate_in_a_runtime_without_timers() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(three_at_a_thousand_a_second()), 3);
}

#[test]
fn requests_wait_for_a_rate_without_any_runtime() {
    struct Unpark(std::thread::Thread);

    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut requests = std::pin::pin!(three_at_a_thousand_a_second());
    let served = loop {
        match requests.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(served) => break served,
            Poll::Pending => std::thread::park(),
        }
    };
    assert_eq!(served, 3);
}

async fn three_at_a_thousand_a_second() -> usize {
    let builder = Throttle::builder().requests_per_second(1_000).queue_cost(5);
    let throttle = builder.build().unwrap();
    let service = throttle.layer().layer(tower::service_fn(|_: Request<String>| async {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    }));
    let requests = [(); 3].map(|()| service.clone().call(get("/")));
    for request in requests {
        assert_eq!(request.await.unwrap().status(), 200);
    }
    throttle.snapshot().counts.started as usize
}

#[test]
fn a_request_runs_until_its_head_if_the_layer_says_so() {
    let (_clock, handlers, throttle) = scene();
    let mut service = throttle.layer().hold_until(HoldUntil::Head).layer(handlers.clone());
    let mut head: Answering = Box::pin(service.call(get("/head")));
    assert_waits(&mut head);
    handlers.answer(Response::new(Full::from("text")));
    let _response = answered(&mut head);
    assert_eq!(throttle.snapshot().running, 0);
}

/// Requests of four threads, of which a third leave at any point. The others are answered, and nothing stays held.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_between_threads() {
    let throttle = Throttle::builder().in_flight(2).queue_cost(u64::MAX / 4).build().unwrap();
    let service = throttle.layer().layer(tower::service_fn(|_: Request<String>| async {
        tokio::task::yield_now().await;
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    }));
    let requests: Vec<_> = (0..3_000)
        .map(|number| {
            let request = service.clone().call(get("/"));
            let task = tokio::spawn(request);
            if number % 3 == 0 {
                task.abort();
            }
            task
        })
        .collect();
    for (number, request) in requests.into_iter().enumerate() {
        let answered = request.await;
        assert!(number % 3 == 0 || answered.unwrap().unwrap().status() == 200);
    }
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.queued, snapshot.queued_cost, snapshot.running), (0, 0, 0));
    let counts = snapshot.counts;
    assert_eq!(counts.offered, counts.started + counts.cancelled);
}

#[test]
fn how_long_an_upgraded_connection_stays_open_says_nothing_about_the_load() {
    let (clock, handlers) = (ManualClock::new(), Handlers::default());
    let builder = Throttle::builder().adaptive(Bandwidth::new(1, 1, 1)).clock(&clock);
    let throttle = builder.queue(Duration::from_millis(4)).build().unwrap();
    let layer = throttle.layer().hold_until(HoldUntil::Close);
    // One phase of the algorithm: one request settles the limit, and 64 are measured.
    let phase = 65;
    let answer = |status| {
        let mut request: Answering = Box::pin(layer.layer(handlers.clone()).call(get("/")));
        assert_waits(&mut request);
        handlers.answer(Response::builder().status(status).body(Full::default()).unwrap());
        let response = answered(&mut request);
        clock.advance(Duration::from_secs(3_600));
        drop(response);
        (throttle.snapshot().running, throttle.snapshot().baseline)
    };
    for _ in 0..phase {
        assert_eq!(answer(101), (0, None));
    }
    for _ in 1..phase {
        answer(200);
    }
    let measured = answer(200);
    assert!(matches!(measured, (0, Some(_))), "{measured:?}");
}

#[test]
fn the_future_of_a_request_is_little_larger_than_that_of_its_handler() {
    let mut handler = tower::service_fn(|_: Request<()>| async {
        let large = [0; 1_000];
        std::future::pending::<()>().await;
        std::hint::black_box(&large);
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    let inner = size_of_val(&handler.call(Request::new(())));
    let builder = Throttle::builder().in_flight(1).queue(Duration::from_secs(1));
    let mut service = builder.build().unwrap().layer().layer(handler);
    let size = size_of_val(&service.call(Request::new(())));
    assert!(size <= inner + 64, "{size} bytes around {inner}");
}

#[test]
fn a_client_that_leaves_the_queue_frees_its_place_and_cost() {
    let (_clock, handlers, throttle) = scene();
    let mut running = send(&throttle, &handlers, "/running");
    assert_waits(&mut running);
    let mut queued: Vec<_> = (0..4).map(|_| send(&throttle, &handlers, "/queued")).collect();
    queued.iter_mut().for_each(assert_waits);
    assert_eq!(answered(&mut send(&throttle, &handlers, "/full")).status(), 503);

    queued.pop();
    assert_eq!(throttle.snapshot().queued_cost, 3_000);
    let mut late = send(&throttle, &handlers, "/late");
    assert_waits(&mut late);
    drop((queued, late, running));
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.queued, snapshot.queued_cost, snapshot.running), (0, 0, 0));
    assert_eq!(snapshot.counts.cancelled, 5);
}

#[test]
fn a_flow_is_the_same_in_all_layers_of_a_throttle() {
    let (_clock, handlers, throttle) = scene();
    let send = |path| -> Answering {
        let layer = throttle.layer().fair_by(sluicegate::Header("x-customer"));
        let mut request = get(path);
        request.headers_mut().insert("x-customer", "alice".parse().unwrap());
        Box::pin(layer.layer(handlers.clone()).call(request))
    };
    let mut requests: Vec<_> = ["/running", "/1", "/2", "/3", "/4"].map(send).into();
    // One flow alone may fill the queue.
    requests.iter_mut().for_each(assert_waits);
    assert_eq!(throttle.snapshot().queued, 4);
}

/// A throttle of ten places, which has learnt that a handler keeps its thread busy for a millisecond: it tells one request
/// at a time to start.
fn busy_scene() -> (ManualClock, Handlers, Throttle) {
    let clock = ManualClock::new();
    let throttle = Throttle::builder().in_flight(10).queue_cost(9_000).clock(&clock);
    let throttle = throttle.build().unwrap();
    let busy = clock.clone();
    let mut service = throttle.layer().layer(tower::service_fn(move |_: Request<String>| {
        busy.advance(Duration::from_millis(1));
        async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) }
    }));
    for _ in 0..60 {
        let mut request: Answering = Box::pin(service.call(get("/busy")));
        answered(&mut request);
        // The thread rests, so that it starts the next one at once.
        clock.advance(Duration::from_secs(1));
    }
    (clock, Handlers::default(), throttle)
}

#[tokio::test]
async fn a_request_that_is_told_to_start_and_not_polled_holds_nobody_up() {
    let (clock, handlers, throttle) = busy_scene();
    let mut running: Vec<_> = (0..10).map(|_| send(&throttle, &handlers, "/running")).collect();
    running.iter_mut().for_each(assert_waits);
    let mut blocked = send(&throttle, &handlers, "/blocked");
    assert_waits(&mut blocked);
    // It is told to start in place of the one that ends, and its thread is busy with something else.
    running.pop();
    let mut waiting = ["/1", "/2", "/3"].map(|path| send(&throttle, &handlers, path));
    running.truncate(4);
    waiting.iter_mut().for_each(assert_waits);
    assert_eq!(handlers.started().len(), 10, "it may still be polled in the turn to come");
    for (request, path) in waiting.iter_mut().zip(["/1", "/2", "/3"]) {
        clock.advance(Duration::from_millis(10));
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        assert_waits(request);
        assert_eq!(handlers.started().last().unwrap(), path);
    }
    // Back again, it starts as it was told, and the next is told as if nothing had been.
    assert_waits(&mut blocked);
    assert_eq!(handlers.started().last().unwrap(), "/blocked");
    drop((running, waiting, blocked));
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.queued, snapshot.running), (0, 0));
}
