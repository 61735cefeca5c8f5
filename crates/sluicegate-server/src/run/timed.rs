//! A connection whose client has to send heads and read responses within a time.
//!
//! hyper's own timer of heads also runs while a connection is idle, and nothing of hyper's waits for a version of HTTP or
//! for a client that does not read.
//!
//! A connection on which a body is left unread closes in two steps (RFC 9112, section 9.6). First the client is told that no
//! more is sent. What it sends is then discarded for a moment. If the socket were closed at once, the system would reset the
//! connection, and a client that reads only once it has sent all of its body would never see its answer.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::activity::Activity;
use super::interim::Interim;

/// The first bytes of a connection in HTTP/2. No method begins with them.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long a body that is left unread is discarded. It bounds the bytes too: no client sends more than its network carries in
/// this time, and nothing of them is kept. nginx waits as long for the next piece.
const DISCARDING: Duration = Duration::from_secs(5);

/// How many bytes are discarded at once.
const PIECE: usize = 16 * 1024;

/// A stream that fails with [`TimedOut`](io::ErrorKind::TimedOut) once a head takes too long, or once the client has read
/// nothing for too long of what is written.
#[derive(Debug)]
pub(crate) struct TimedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    head_time: Duration,
    write_time: Duration,
    /// How many bytes of the preface of HTTP/2 have come; `None` if it is known which version the client speaks.
    preface: Option<usize>,
    /// Since the head began that is awaited.
    head: Option<Pin<Box<Sleep>>>,
    /// Since the client has read nothing.
    write: Option<Pin<Box<Sleep>>>,
    /// Since the client was told that no more is sent, while a body that it may still send is discarded.
    discarding: Option<Pin<Box<Sleep>>>,
    /// The interim responses of a proxy, which hyper does not write.
    interim: Option<Interim>,
}

impl<S> TimedStream<S> {
    /// A stream that is new. A head may take `head_time` from its first byte, and the first one from now on. The client
    /// may read nothing for `write_time`.
    pub(crate) fn new(
        stream: S,
        activity: Arc<Activity>,
        head_time: Duration,
        write_time: Duration,
        interim: Option<Interim>,
    ) -> Self {
        let (preface, head, write, discarding) = (Some(0), None, None, None);
        Self { stream, activity, head_time, write_time, preface, head, write, discarding, interim }
    }

    fn came(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(seen) = self.preface {
            self.preface = self.still_preface(seen, bytes);
        }
        // The timer is of the head before. The next poll that finds nothing to read makes one for the new head, which
        // thus has its whole time from its first byte, however slowly the bytes behind it come.
        if self.activity.came() {
            self.head = None;
        }
    }

    /// How many bytes of the preface have come, unless these show which version of HTTP the client speaks.
    fn still_preface(&self, seen: usize, bytes: &[u8]) -> Option<usize> {
        // The preface may come in any pieces. Until it is whole, the time of a first head runs, so a client cannot
        // escape it by sending the first letter of the preface.
        let rest = &PREFACE[seen..];
        let same = bytes.iter().zip(rest).take_while(|(one, other)| one == other).count();
        if same == rest.len() {
            self.activity.speaks_http_2();
            return None;
        }
        (same == bytes.len()).then_some(seen + same)
    }

    /// Ready once the client has ended too, or has had its time to do so.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()>
    where
        S: AsyncRead + Unpin,
    {
        let timer = self.discarding.get_or_insert_with(|| Box::pin(sleep(DISCARDING)));
        // Before reading: a client that sends without a pause must not keep the timer from being looked at.
        if timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut piece = [MaybeUninit::uninit(); PIECE];
        loop {
            let mut buffer = ReadBuf::uninit(&mut piece);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }

    /// What came of writing, or an error if the client has read nothing for too long.
    fn write_in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write = None;
            return written;
        }
        let time = self.write_time;
        // A write that is pending means that the buffers of the system are full: the client has read nothing for a
        // while. Any byte that goes out drops the timer, so a slow reader that goes on reading is never cut off here.
        let timer = self.write.get_or_insert_with(|| Box::pin(sleep(time)));
        timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if read.is_ready() {
            this.came(&buffer.filled()[before..]);
        } else if this.activity.awaits_head() {
            let time = this.head_time;
            let timer = this.head.get_or_insert_with(|| Box::pin(sleep(time)));
            return timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()));
        } else {
            this.head = None;
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.write_in_time(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.write_in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes once it has written everything that it has, each time that its task runs.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // Only here, and never in `poll_write`: there, hyper may be in the middle of a message, and the bytes would end
        // up inside of it.
        if let Some(interim) = &this.interim {
            match interim.poll_write(Pin::new(&mut this.stream), cx) {
                Poll::Ready(written) => written?,
                pending => return this.write_in_time(cx, pending),
            }
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.write_in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.discarding.is_none() {
            let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
            ready!(self.write_in_time(cx, closed))?;
        }
        if self.activity.leaves_body() {
            ready!(self.poll_discard(cx));
        }
        Poll::Ready(Ok(()))
    }
}
