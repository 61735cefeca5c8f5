//! Bounds the cost of a connection: the size of answers, answers without a command, and the time without an answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{Bounds, Frames, Oversize};
use crate::runtime::{Runtime, Sleep};

/// The largest answer. The largest by far is the map of a cluster's slots, of at most 16,384 ranges.
const LARGEST: Bounds = Bounds { bytes: 4 << 20, parts: 1 << 18 };

/// Push messages before a command is answered. None are asked for; a server that sends them without end would keep a
/// worker busy, and would never be silent.
const MESSAGES: u64 = 1_024;

const UNBOUNDED: Bounds = Bounds { bytes: u64::MAX, parts: u64::MAX };

/// A stream that fails when the server sends an invalid answer, or none for too long. The client then closes the
/// connection, and every command that waits on it fails.
pub(super) struct Guarded<S> {
    stream: S,
    sent: Frames,
    received: Frames,
    silence: Silence,
}

/// Notices when commands are not answered.
struct Silence {
    runtime: Arc<Runtime>,
    /// The longest time without an answer. It is noticed between once and twice that time.
    longest: Duration,
    /// The timer, and how many commands had been sent when it was started.
    wait: Option<(Sleep, u64)>,
}

impl<S> Guarded<S> {
    pub(super) const fn new(stream: S, runtime: Arc<Runtime>, longest: Duration) -> Self {
        Self {
            stream,
            sent: Frames::new(UNBOUNDED),
            received: Frames::new(LARGEST),
            silence: Silence { runtime, longest, wait: None },
        }
    }

    fn answer(&mut self, bytes: &[u8]) -> io::Result<()> {
        let too_large = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        self.received.read(bytes).map_err(|oversize| {
            too_large(match oversize {
                Oversize::Bytes => "an answer of more than 4 MiB",
                Oversize::Parts => "an answer of more than 262,144 parts",
            })
        })?;
        if self.received.pushed() > MESSAGES {
            return Err(too_large("more than 1,024 messages without an answer"));
        }
        if self.received.ended() > self.sent.ended() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer without a command"));
        }
        Ok(())
    }

    fn listen(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let (asked, answered) = (self.sent.ended(), self.received.ended());
        self.silence.listen(cx, asked, answered)
    }
}

impl Silence {
    fn listen(&mut self, cx: &mut Context<'_>, asked: u64, answered: u64) -> io::Result<()> {
        loop {
            let Some((sleep, before)) = &mut self.wait else {
                if asked == answered {
                    return Ok(());
                }
                self.wait = Some((self.runtime.sleep(self.longest), asked));
                continue;
            };
            if Pin::new(sleep).poll(cx).is_pending() {
                return Ok(());
            }
            if answered < *before {
                let longest = self.longest;
                let silent = format!("no answer within {longest:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, silent));
            }
            self.wait = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, into) {
            Poll::Ready(read) => {
                read?;
                self.answer(&into.filled()[before..])?;
                Poll::Ready(Ok(()))
            }
            Poll::Pending => match self.listen(cx) {
                Ok(()) => Poll::Pending,
                Err(silent) => Poll::Ready(Err(silent)),
            },
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        // Commands have no bound, so this cannot fail.
        let _ = self.sent.read(&bytes[..written]);
        // Registers the timer, so that the task wakes up even if nothing arrives.
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
