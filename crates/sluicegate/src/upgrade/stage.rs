use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::upgrade::{OnUpgrade, Upgraded};

use super::{Shared, lock};

/// What the request on the stage asks for.
pub(super) const PROTOCOL: &str = "sluicegate";

/// The request that is played.
const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: sluicegate\r\n\r\n";

/// First plays a request and swallows the response; then it is the real connection, as soon as that has
/// been upgraded.
pub(super) struct Stage {
    act: Act,
    /// Keeps what is held as long as this exists.
    _shared: Arc<Shared>,
}

enum Act {
    /// The handshake: the part of the request that is still to be read, and whether the response was written.
    Played {
        unread: &'static [u8],
        is_answered: bool,
        real: OnUpgrade,
    },
    /// The real connection has not been upgraded yet.
    Waiting {
        real: OnUpgrade,
        waiters: Arc<Waiters>,
    },
    Open(Upgraded),
    Failed,
}

impl Stage {
    pub(super) fn new(real: OnUpgrade, shared: Arc<Shared>) -> Self {
        let act = Act::Played { unread: REQUEST, is_answered: false, real };
        Self { act, _shared: shared }
    }

    /// The real connection.
    fn real(&mut self, cx: &mut Context<'_>, side: Side) -> Poll<io::Result<Pin<&mut Upgraded>>> {
        if let Act::Waiting { real, waiters } = &mut self.act {
            waiters.add(side, cx.waker());
            let waker = Waker::from(Arc::clone(waiters));
            let upgraded = ready!(Pin::new(real).poll(&mut Context::from_waker(&waker)));
            // One side may wait while the other one finds the connection open.
            waiters.wake_by_ref();
            match upgraded {
                Ok(upgraded) => self.act = Act::Open(upgraded),
                Err(error) => {
                    self.act = Act::Failed;
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::NotConnected, error)));
                }
            }
        }
        Poll::Ready(match &mut self.act {
            Act::Open(upgraded) => Ok(Pin::new(upgraded)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl Read for Stage {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if let Act::Played { unread, .. } = &mut self.act {
            if unread.is_empty() {
                return Poll::Pending;
            }
            let (now, later) = unread.split_at(unread.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *unread = later;
            return Poll::Ready(Ok(()));
        }
        ready!(self.real(cx, Side::Read))?.poll_read(cx, buffer)
    }
}

impl Write for Stage {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Act::Played { is_answered, .. } = &mut self.act {
            *is_answered = true;
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(self.real(cx, Side::Write))?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Act::Played { is_answered, .. } = &mut self.act {
            *is_answered = true;
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        ready!(self.real(cx, Side::Write))?.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.act {
            Act::Open(upgraded) => upgraded.is_write_vectored(),
            Act::Played { .. } | Act::Waiting { .. } | Act::Failed => false,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Act::Played { is_answered, real, .. } = &self.act {
            // hyper flushes when all of the response is written, and hands the stage over then.
            if *is_answered {
                self.act = Act::Waiting { real: real.clone(), waiters: Arc::default() };
            }
            return Poll::Ready(Ok(()));
        }
        ready!(self.real(cx, Side::Write))?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Act::Played { .. } = &self.act {
            return Poll::Ready(Ok(()));
        }
        ready!(self.real(cx, Side::Write))?.poll_shutdown(cx)
    }
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Read,
    Write,
}

/// The reader and the writer may be two tasks, and `OnUpgrade` wakes the last one that asked.
#[derive(Default)]
struct Waiters(Mutex<[Option<Waker>; 2]>);

impl Waiters {
    fn add(&self, side: Side, waker: &Waker) {
        lock(&self.0)[side as usize] = Some(waker.clone());
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waiters = std::mem::take(&mut *lock(&self.0));
        waiters.into_iter().flatten().for_each(Waker::wake);
    }
}
