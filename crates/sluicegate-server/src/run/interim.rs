//! Interim responses of the application, such as 103 Early Hints.
//!
//! hyper's server has no way to send one. In HTTP/1 their bytes go around it: they are written to the connection at a time
//! when hyper has written everything it has, and before it gets the final response. In HTTP/2 the state of the connection
//! is hyper's alone, and they end here.

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use http::{HeaderMap, StatusCode};
use tokio::io::AsyncWrite;

/// The most bytes of interim responses that wait to be written. Further ones are dropped; they are only hints.
const MOST: usize = 16 * 1024;

/// The interim responses that are on their way to the client of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interim(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    written: usize,
    /// The task of the connection.
    waker: Option<Waker>,
}

impl Interim {
    /// Passes an interim response on, unless it is for the proxy: it has answered `Expect` itself, and a switch of protocols
    /// is a final response.
    pub(crate) fn pass(&self, status: StatusCode, headers: &HeaderMap) {
        if matches!(status, StatusCode::CONTINUE | StatusCode::SWITCHING_PROTOCOLS) {
            return;
        }
        let reason = status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
        for (name, value) in headers {
            head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        head.extend(b"\r\n");
        let mut queue = self.lock();
        if queue.bytes.len() + head.len() <= MOST {
            queue.bytes.extend(head);
            queue.wake();
        }
    }

    /// The final response, once all interim ones are written. The returned future is to be polled by the task of the
    /// connection.
    pub(crate) async fn before<T>(self, response: impl Future<Output = T>) -> T {
        let mut response = pin!(response);
        let response = std::future::poll_fn(|cx| {
            // What comes from now on wakes this task.
            self.lock().wakes(cx.waker());
            response.as_mut().poll(cx)
        });
        let response = response.await;
        std::future::poll_fn(|cx| {
            let mut queue = self.lock();
            queue.wakes(cx.waker());
            // hyper is given the final response only now. Otherwise it might write that first, and what follows a final
            // response is the next one for the client.
            if queue.bytes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        response
    }

    /// Writes what waits, at a time when hyper is not in the middle of a message.
    pub(super) fn poll_write(
        &self,
        stream: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.lock().poll_write(stream, cx)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn wakes(&mut self, task: &Waker) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(task),
            None => self.waker = Some(task.clone()),
        }
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    fn poll_write(
        &mut self,
        mut stream: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.written < self.bytes.len() {
            let written = ready!(stream.as_mut().poll_write(cx, &self.bytes[self.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        (self.bytes, self.written) = (Vec::new(), 0);
        self.wake();
        Poll::Ready(Ok(()))
    }
}
