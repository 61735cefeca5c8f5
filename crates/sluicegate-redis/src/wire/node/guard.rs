//! What a connection may cost: answers of a bounded size, none that nobody asked for, and no silence without end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{Bounds, Frames, Oversize};
use crate::runtime::{Runtime, Sleep};

/// What an answer may measure. The largest by far is who serves what in a cluster, of at most 16,384 ranges.
const LARGEST: Bounds = Bounds { bytes: 4 << 20, parts: 1 << 18 };

const UNBOUNDED: Bounds = Bounds { bytes: u64::MAX, parts: u64::MAX };

/// A stream that fails when the server sends what it should not, or nothing for too long. A client that reads
/// from it gives up the connection then, and with it all that waits for an answer there.
pub(super) struct Guarded<S> {
    stream: S,
    asked: Frames,
    answered: Frames,
    silence: Silence,
}

/// Whether questions are answered at all.
struct Silence {
    runtime: Arc<Runtime>,
    /// How long one may be without an answer. It is noticed after that time, or after twice as long.
    longest: Duration,
    /// How many had been asked when it was begun to wait.
    wait: Option<(Sleep, u64)>,
}

impl<S> Guarded<S> {
    pub(super) const fn new(stream: S, runtime: Arc<Runtime>, longest: Duration) -> Self {
        Self {
            stream,
            asked: Frames::new(UNBOUNDED),
            answered: Frames::new(LARGEST),
            silence: Silence { runtime, longest, wait: None },
        }
    }

    fn answer(&mut self, bytes: &[u8]) -> io::Result<()> {
        let too_large = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        self.answered.read(bytes).map_err(|oversize| {
            too_large(match oversize {
                Oversize::Bytes => "an answer of more than 4 MiB",
                Oversize::Parts => "an answer of more than 262,144 parts",
            })
        })?;
        if self.answered.ended() > self.asked.ended() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "an answer that nobody asked for",
            ));
        }
        Ok(())
    }

    fn listen(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let (asked, answered) = (self.asked.ended(), self.answered.ended());
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
        // Without bounds, nothing is too large.
        let _ = self.asked.read(&bytes[..written]);
        // So that the task is woken, if it reads nothing from now on.
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
