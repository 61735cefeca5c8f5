//! Bounds the cost of a connection: what the server sends without an answer, and the time without an answer.
//!
//! The client library reads answers of any size and waits for them for ever. It allocates for at most 4,096 parts of an
//! answer before they come, and for nothing else, so a bound on bytes is a bound on memory. Answers are counted where they
//! come to their callers, and not by reading the protocol a second time. So an answer that nobody asked for is ignored
//! where no call is under way, and does not end the connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::runtime::{Runtime, Sleep};

/// The most bytes until a call is answered. The largest answer by far is the map of a cluster's slots, of at most 16,384
/// ranges. A server that sends messages without end would keep a worker busy.
const LARGEST: u64 = 4 << 20;

/// The calls on a connection.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Calls whose answer is awaited.
    under_way: AtomicUsize,
    /// Calls since the last answer that nobody waits for any more. Their answers are missing all the same.
    given_up: AtomicUsize,
    /// Calls that were answered.
    answered: AtomicU64,
}

/// A call, from before it is sent until it is answered or given up.
pub(super) struct TrafficCall<'a> {
    traffic: &'a Traffic,
    is_answered: bool,
}

impl Traffic {
    pub(super) fn begin(&self) -> TrafficCall<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        TrafficCall { traffic: self, is_answered: false }
    }

    fn is_waiting(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) + self.given_up.load(Ordering::Relaxed) > 0
    }
}

impl TrafficCall<'_> {
    pub(super) fn answered(mut self) {
        self.is_answered = true;
        self.traffic.given_up.store(0, Ordering::Relaxed);
        self.traffic.answered.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for TrafficCall<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.traffic.given_up.fetch_add(1, Ordering::Relaxed);
        }
        self.traffic.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that fails when the server sends too much, or does not answer for too long. The client then closes the
/// connection, and every command that waits on it fails.
pub(super) struct GuardedStream<S> {
    stream: S,
    runtime: Arc<Runtime>,
    traffic: Arc<Traffic>,
    /// The answers when bytes last came, and the bytes since then.
    received: (u64, u64),
    /// The longest time without an answer. It is noticed between once and twice that time.
    longest: Duration,
    /// The timer, and the answers when it was started.
    silence: Option<(Sleep, u64)>,
}

impl<S> GuardedStream<S> {
    pub(super) const fn new(
        stream: S,
        runtime: Arc<Runtime>,
        longest: Duration,
        traffic: Arc<Traffic>,
    ) -> Self {
        Self { stream, runtime, traffic, received: (0, 0), longest, silence: None }
    }

    fn receive(&mut self, bytes: usize) -> io::Result<()> {
        let answered = self.traffic.answered.load(Ordering::Relaxed);
        // Bytes are counted from the last answer on. A busy connection may carry any amount in all.
        let before = if self.received.0 == answered { self.received.1 } else { 0 };
        self.received = (answered, before + bytes as u64);
        if self.received.1 > LARGEST {
            let much = "more than 4 MiB without an answer";
            return Err(io::Error::new(io::ErrorKind::InvalidData, much));
        }
        Ok(())
    }

    /// Fails if no call was answered for too long. Registers the timer, so that the task wakes up even if nothing arrives.
    fn listen(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            let answered = self.traffic.answered.load(Ordering::Relaxed);
            let is_waiting = self.traffic.is_waiting();
            let Some((sleep, before)) = &mut self.silence else {
                if !is_waiting {
                    return Ok(());
                }
                self.silence = Some((self.runtime.sleep(self.longest), answered));
                continue;
            };
            // The timer is not reset by each answer, which would cost more than it is worth. When it fires, it looks
            // whether any answer has come since it was started.
            if Pin::new(sleep).poll(cx).is_pending() {
                return Ok(());
            }
            if is_waiting && answered == *before {
                let silent = format!("no answer within {:?}", self.longest);
                return Err(io::Error::new(io::ErrorKind::TimedOut, silent));
            }
            self.silence = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, into) {
            Poll::Ready(read) => {
                Poll::Ready(read.and_then(|()| self.receive(into.filled().len() - before)))
            }
            Poll::Pending => match self.listen(cx) {
                Ok(()) => Poll::Pending,
                Err(silent) => Poll::Ready(Err(silent)),
            },
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.listen(cx)?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
