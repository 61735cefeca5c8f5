//! Stores that fail, or that cannot keep a limit.

use super::CLIENT;
use super::common::{app, send, store};
use sluicegate::store::OnStoreError;
use sluicegate::{Limit, Memory, RateLimitLayer};

#[tokio::test]
async fn a_full_store_is_never_too_many_requests() {
    let (_, clock) = store();
    let tiny = || Memory::builder().capacity(1).clock(&clock).build();
    let limit = Limit::per_hour(1).when_full(sluicegate::limit::WhenFull::Admit);
    let layer = RateLimitLayer::new(limit.by(CLIENT));

    let open = layer.clone().store(tiny());
    let counts = open.clone();
    let app_open = app(open);
    for client in 0..200 {
        assert_eq!(send(&app_open, "/", &client.to_string()).await.status(), 200);
    }
    assert!(counts.counts().store_failures > 0);

    let closed = app(layer.store(tiny()).on_store_error(OnStoreError::Refuse));
    let mut unavailable = 0;
    for client in 0..200 {
        let response = send(&closed, "/", &client.to_string()).await;
        assert_ne!(response.status(), 429);
        if response.status() == 503 {
            unavailable += 1;
            assert!(response.body().contains("temporary-reduced-capacity"));
        }
    }
    assert!(unavailable > 0);
}

#[tokio::test]
#[should_panic(expected = "the store cannot keep the limit `100/minute`")]
async fn a_store_says_at_the_start_what_it_cannot_keep() {
    use sluicegate::adapter::{Answer, Charge, Debit, Receipt};
    use sluicegate::limit::LimitError;
    use sluicegate::store::Store;

    #[derive(Clone)]
    struct Picky;

    impl Store for Picky {
        type Future = <Memory as Store>::Future;

        fn take(&self, _: &Charge) -> Answer<Self::Future> {
            unreachable!("it is not asked")
        }
        fn peek(&self, _: &Charge) -> Answer<Self::Future> {
            unreachable!("it is not asked")
        }
        fn reset(&self, _: &Charge) -> Answer<Self::Future> {
            unreachable!("it is not asked")
        }
        fn settle(&self, _: &Debit, _: &Receipt, _: u64) {}
        fn check(&self, _: &Limit) -> Result<(), LimitError> {
            Err("".parse::<Limit>().unwrap_err())
        }

        fn follow(&self, _: &Debit, _: u64, _: u64) {}

        fn follow_status(&self, _: &Debit, _: &sluicegate::limit::LimitStatus) {}

        fn clock(&self) -> sluicegate::clock::Clock {
            sluicegate::clock::Clock::machine()
        }
    }

    let _ = RateLimitLayer::new(Limit::per_minute(100).by(CLIENT)).store(Picky);
}
