//! Responses of HTTP/2 whose clients do not read them.
//!
//! A client announces how much of each stream it is ready to read, and may never announce more. The connection looks alive
//! meanwhile, so the time to write does not end it. The response would keep its connection to the application and its
//! places for as long as the client wants.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

/// How often responses are looked at within the time that a client may take.
const LOOKS: u32 = 8;

/// The responses on one connection whose bodies have not ended.
#[derive(Debug)]
pub(crate) struct Stalls<B> {
    bodies: Mutex<Bodies<B>>,
    begun: Notify,
}

#[derive(Debug)]
struct Bodies<B> {
    next: u64,
    watched: BTreeMap<u64, Arc<Slot<B>>>,
}

#[derive(Debug)]
struct Slot<B> {
    body: Mutex<Option<B>>,
    /// Whether the client waits for the next piece of the application. Such a body is not stalled.
    waits: AtomicBool,
    /// How often it was looked at since a piece was asked for.
    looks: AtomicU32,
}

impl<B> Stalls<B> {
    pub(crate) fn new() -> Arc<Self> {
        let bodies = Bodies { next: 0, watched: BTreeMap::new() };
        Arc::new(Self { bodies: Mutex::new(bodies), begun: Notify::new() })
    }

    /// Watches a body. It is dropped early if the client does not ask for its next piece in time.
    pub(crate) fn watch(self: &Arc<Self>, body: B) -> StallGuard<B> {
        let slot = Arc::new(Slot {
            body: Mutex::new(Some(body)),
            waits: AtomicBool::new(false),
            looks: AtomicU32::new(0),
        });
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        let id = bodies.next;
        bodies.next += 1;
        bodies.watched.insert(id, Arc::clone(&slot));
        drop(bodies);
        // Where nothing is watched, the watcher sleeps without a timer, so that connections of HTTP/1 and idle ones
        // cost nothing.
        self.begun.notify_one();
        StallGuard { stalls: Arc::clone(self), id, slot }
    }

    /// Drops every body of which no piece was asked for within `time`, or an eighth of it later.
    pub(crate) async fn drop_stalled(&self, time: Duration) -> Infallible {
        loop {
            let watched = self.watched();
            if watched.is_empty() {
                self.begun.notified().await;
                continue;
            }
            watched.iter().for_each(|slot| slot.look());
            drop(watched);
            sleep(time / LOOKS).await;
        }
    }

    fn watched(&self) -> Vec<Arc<Slot<B>>> {
        let bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.watched.values().cloned().collect()
    }
}

impl<B> Slot<B> {
    fn look(&self) {
        // The client has asked, and the application has sent nothing: that is no stall of the client.
        if self.waits.load(Ordering::Relaxed) {
            self.looks.store(0, Ordering::Relaxed);
        } else if self.looks.fetch_add(1, Ordering::Relaxed) > LOOKS {
            let body = self.body.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Not while the lock is held: much ends with a body.
            drop(body);
        }
    }
}

/// A body that is watched: see [`Stalls::watch`].
#[derive(Debug)]
pub(crate) struct StallGuard<B> {
    stalls: Arc<Stalls<B>>,
    id: u64,
    slot: Arc<Slot<B>>,
}

impl<B> StallGuard<B> {
    /// What `look` makes of the body; `None` if it was dropped because its client had stalled.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut B) -> T) -> Option<T> {
        let mut body = self.slot.body.lock().unwrap_or_else(PoisonError::into_inner);
        body.as_mut().map(look)
    }

    /// Notes that the next piece was asked for, and whether it has to be waited for.
    pub(crate) fn asked(&self, waits: bool) {
        self.slot.waits.store(waits, Ordering::Relaxed);
        self.slot.looks.store(0, Ordering::Relaxed);
    }
}

impl<B> Drop for StallGuard<B> {
    fn drop(&mut self) {
        let mut bodies = self.stalls.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.watched.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    const TIME: Duration = Duration::from_secs(30);

    /// How long `body` lives, at most an hour.
    async fn life(stalls: &Stalls<u8>, body: &StallGuard<u8>) -> Duration {
        let begun = Instant::now();
        let gone = async {
            while body.with(|_| ()).is_some() {
                sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            never = stalls.drop_stalled(TIME) => match never {},
            _ = timeout(Duration::from_secs(3_600), gone) => begun.elapsed(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_nobody_asks_for_is_dropped_in_time() {
        let stalls = Stalls::new();
        let body = stalls.watch(1);
        let never_asked = life(&stalls, &body).await;
        assert!(never_asked >= TIME && never_asked <= TIME * 2, "{never_asked:?}");
        let body = stalls.watch(2);
        body.asked(true);
        body.asked(false);
        let asked = life(&stalls, &body).await;
        assert!(asked >= TIME && asked <= TIME * 2, "{asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_waits_for_the_application_stays() {
        let stalls = Stalls::new();
        let body = stalls.watch(1);
        body.asked(true);
        assert_eq!(life(&stalls, &body).await, Duration::from_secs(3_600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_read_slowly_stays() {
        let stalls = Stalls::new();
        let body = stalls.watch(1);
        let reading = async {
            for _ in 0..20 {
                sleep(TIME * 3 / 4).await;
                body.asked(false);
            }
        };
        tokio::select! {
            never = stalls.drop_stalled(TIME) => match never {},
            () = reading => {}
        }
        assert_eq!(body.with(|body| *body), Some(1));
        drop(body);
        assert!(stalls.watched().is_empty());
    }
}
