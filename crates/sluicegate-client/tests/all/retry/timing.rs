use sluicegate_client::outgoing::Context as Origins;

use super::*;

/// When attempts came, in milliseconds of a manual clock, and the status in the end.
async fn times(
    answers: &[Answer],
    settings: impl FnOnce(RetryBuilder) -> RetryBuilder,
    request: Request<String>,
) -> (Vec<u64>, u16) {
    let clock = ManualClock::at(Duration::ZERO);
    let server = Server::answering(answers);
    let times = Arc::new(Mutex::new(Vec::new()));
    let (noted, hands, inner) = (times.clone(), clock.clone(), server.clone());
    let noting = tower::service_fn(move |request: Request<String>| {
        noted.lock().unwrap().push(hands.now() / 1_000);
        let mut inner = inner.clone();
        async move { inner.call(request).await }
    });
    let mut service = settings(RetryLayer::builder().clock(&clock)).build().unwrap().layer(noting);
    let sent = tokio::spawn(async move { service.ready().await?.call(request).await });
    while !sent.is_finished() {
        clock.advance(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    let status = sent.await.unwrap().unwrap().status().as_u16();
    let times = times.lock().unwrap().clone();
    (times, status)
}

const AFTER_5: Answer = Answer::Status(503, Some(("retry-after", "5")));

#[tokio::test]
async fn no_attempt_comes_before_retry_after() {
    for _ in 0..20 {
        let (times, status) = times(&[AFTER_5], |settings| settings, get()).await;
        let waited = times[1] - times[0];
        assert!((5_000..=5_610).contains(&waited), "{times:?}");
        assert_eq!(status, 200);
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_left_to_the_caller() {
    let patient = |settings: RetryBuilder| settings.longest_wait(Duration::from_secs(4));
    assert_eq!(times(&[AFTER_5], patient, get()).await.0.len(), 1);
    let hostile = Answer::Status(429, Some(("retry-after", "99999999999999999999999")));
    let (times, status) = times(&[hostile], |settings| settings, get()).await;
    assert_eq!((times.len(), status), (1, 429));
}

#[tokio::test]
async fn the_time_of_the_caller_is_for_all_attempts_together() {
    let in_time = |seconds| {
        let mut request = get();
        request.extensions_mut().insert(Origins::new().timeout(Duration::from_secs(seconds)));
        request
    };
    assert_eq!(times(&[AFTER_5, AFTER_5], |settings| settings, in_time(4)).await.0.len(), 1);
    assert_eq!(times(&[AFTER_5, AFTER_5], |settings| settings, in_time(8)).await.0.len(), 2);
    assert_eq!(times(&[AFTER_5, AFTER_5], |settings| settings, in_time(20)).await.0.len(), 3);
}

#[tokio::test]
async fn a_caller_that_leaves_while_an_attempt_is_awaited_sends_no_more() {
    let clock = ManualClock::new();
    let server = Server::always(AFTER_5);
    let mut service = RetryLayer::builder().clock(&clock).build().unwrap().layer(server.clone());
    let sent = tokio::spawn(async move { service.ready().await?.call(get()).await });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!((server.seen(), clock.sleepers()), (1, 1));
    sent.abort();
    clock.advance(Duration::from_secs(60));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.seen(), 1);
}
