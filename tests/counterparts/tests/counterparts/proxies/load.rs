//! Requests that come to an Envoy at an even rate, and those that it lets pass.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::{MissedTickBehavior, interval};

/// What comes to an Envoy, and what passes.
pub(crate) struct Load {
    /// Requests a second.
    pub(crate) demand: AtomicU64,
    sent: AtomicU64,
    passed: AtomicU64,
    refused: AtomicU64,
    admitted: Admitted,
}

/// When requests were let in: at some moment between these two. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Admitted(Arc<Mutex<Vec<(Instant, Instant)>>>);

impl Admitted {
    pub(crate) fn add(&self, sent: Instant, answered: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((sent, answered));
    }

    /// The most that were certainly let in within this time. A busy machine makes it smaller and never larger.
    pub(crate) fn most_within(&self, time: Duration) -> usize {
        /// How far apart the times begin that are looked at.
        const STEP: Duration = Duration::from_millis(5);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_unstable();
        let (mut most, mut first) = (0, 0);
        let mut begin = all.first().map_or_else(Instant::now, |(sent, _)| *sent);
        while first < all.len() {
            let sent = all[first..].iter().take_while(|(sent, _)| *sent <= begin + time);
            most = most.max(sent.filter(|(_, answered)| *answered <= begin + time).count());
            begin += STEP;
            first += all[first..].iter().take_while(|(sent, _)| *sent < begin).count();
        }
        most
    }
}

/// Connections to each Envoy.
const CONNECTIONS: u64 = 4;

impl Load {
    pub(crate) fn start(demand: u64, envoy: SocketAddr, admitted: &Admitted) -> Arc<Self> {
        let load = Arc::new(Self {
            demand: AtomicU64::new(demand),
            sent: AtomicU64::default(),
            passed: AtomicU64::default(),
            refused: AtomicU64::default(),
            admitted: admitted.clone(),
        });
        for _ in 0..CONNECTIONS {
            tokio::spawn(send(envoy, Arc::clone(&load)));
        }
        load
    }

    /// For the message of a failure.
    pub(crate) fn told(&self) -> String {
        let [sent, passed, refused] =
            [&self.sent, &self.passed, &self.refused].map(|count| count.load(Ordering::Relaxed));
        format!("{sent} sent, {passed} passed, {refused} refused")
    }

    /// How many have passed, and how many were sent.
    pub(crate) fn seen(&self) -> (u64, u64) {
        (self.passed.load(Ordering::Relaxed), self.sent.load(Ordering::Relaxed))
    }
}

/// When the requests of a connection were sent that have no answer yet. Answers come in their order.
type Unanswered = Arc<Mutex<VecDeque<Instant>>>;

/// Sends requests at an even rate on one connection, which is opened again if Envoy closes it.
async fn send(envoy: SocketAddr, load: Arc<Load>) {
    let mut steps = interval(Duration::from_millis(10));
    steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut due = 0.0;
    loop {
        let Ok(stream) = TcpStream::connect(envoy).await else {
            steps.tick().await;
            continue;
        };
        let (answers, mut requests) = stream.into_split();
        let unanswered = Unanswered::default();
        let mut counting = tokio::spawn(count(answers, Arc::clone(&load), Arc::clone(&unanswered)));
        let mut is_open = true;
        while is_open {
            tokio::select! {
                _ = steps.tick() => {}
                // Envoy has closed the connection, as it does after some refusals.
                _ = &mut counting => break,
            }
            due += load.demand.load(Ordering::Relaxed) as f64 / CONNECTIONS as f64 / 100.0;
            let now = due as u64;
            due -= now as f64;
            for _ in 0..now {
                load.sent.fetch_add(1, Ordering::Relaxed);
                unanswered.lock().unwrap_or_else(PoisonError::into_inner).push_back(Instant::now());
                is_open &= requests.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.is_ok();
            }
        }
    }
}

/// Counts the answers on one connection.
async fn count(mut answers: OwnedReadHalf, load: Arc<Load>, unanswered: Unanswered) {
    const HEAD: &[u8] = b"HTTP/1.1 ";
    let (mut bytes, mut before) = ([0; 16 * 1024], Vec::new());
    while let Ok(read @ 1..) = answers.read(&mut bytes).await {
        let now = Instant::now();
        before.extend_from_slice(&bytes[..read]);
        let mut done = 0;
        while let Some(at) =
            before[done..].windows(HEAD.len() + 3).position(|text| text.starts_with(HEAD))
        {
            let status = &before[done + at + HEAD.len()..][..3];
            let sent = unanswered.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let sent = sent.expect("a request before its answer");
            if status == b"200" {
                load.passed.fetch_add(1, Ordering::Relaxed);
                load.admitted.add(sent, now);
            } else {
                load.refused.fetch_add(1, Ordering::Relaxed);
            }
            done += at + HEAD.len();
        }
        before.drain(..done.max(before.len().saturating_sub(HEAD.len() + 2)));
    }
}
