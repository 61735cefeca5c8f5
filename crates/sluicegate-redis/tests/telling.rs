//! What the operator is told about an outage, with the default features. A program of its own: other tests have no
//! subscriber, and `tracing` remembers that of the places that they pass at the same moment.

#[path = "faults/fake.rs"]
#[expect(dead_code, reason = "this test needs a part of it")]
mod fake;

use std::io::{Result, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::{Fallback, Fleet, Share, Store};
use sluicegate_core::{Limit, ManualClock, Memory};
use sluicegate_redis::Redis;

use self::fake::{Act, Fake};

#[tokio::test]
async fn an_outage_behind_a_fallback_is_told_when_it_begins_and_when_it_ends() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
    let subscriber = subscriber.without_time().with_ansi(false).with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());

    let is_down = Arc::new(AtomicBool::new(false));
    let fake = Fake::new({
        let is_down = Arc::clone(&is_down);
        move |_, _| is_down.load(Ordering::SeqCst).then_some(Act::Close)
    });
    let clock = ManualClock::new();
    let redis = Redis::builder().url(&fake.url()).clock(&clock);
    let redis = redis.reconnect(Duration::from_millis(1), Duration::from_millis(4));
    let redis = redis.build().expect("a good URL");
    let share = Memory::builder().clock(&clock).build();
    let store = Fallback(redis, Share::new(share, &Fleet::fixed(1, 4)));
    let take = async || {
        let charge = Charge::of(Limit::per_second(1_000), KeyBuf::of("alice"), 1);
        let outcome = match store.take(&charge) {
            Answer::Now(outcome) => outcome,
            Answer::Later(future) => future.await,
        };
        assert!(outcome.expect("a decision of one of the stores").is_admitted());
    };

    take().await;
    assert_eq!(log.lines("WARN"), [""; 0]);

    is_down.store(true, Ordering::SeqCst);
    fake.hang_up();
    log.until("lost the connection to Redis", &take).await;
    log.until("cannot connect to Redis", &take).await;

    is_down.store(false, Ordering::SeqCst);
    log.until("connected to Redis again", async || {
        clock.advance(Duration::from_secs(1));
        take().await;
    })
    .await;
    for sentence in ["lost the connection to Redis", "connected to Redis again"] {
        let lines = log.lines("WARN");
        let told = lines.iter().filter(|line| line.contains(sentence)).count();
        assert_eq!(told, 1, "{sentence}: {lines:?}");
    }
    assert_eq!(log.lines("ERROR"), [""; 0]);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self, level: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(level)).map(str::to_owned).collect()
    }

    /// Calls `ask` until there is a warning that contains `sentence`.
    async fn until(&self, sentence: &str, ask: impl AsyncFn()) {
        for _ in 0..10_000 {
            if self.lines("WARN").iter().any(|line| line.contains(sentence)) {
                return;
            }
            ask().await;
            // Connections are made in the background.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("nobody is told that sluicegate {sentence}: {:?}", self.lines(""));
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
