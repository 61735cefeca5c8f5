//! Handlers that wait until the test lets them answer, in the order in which they were started.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;
use http_body::Frame;
use sluicegate::{Cost, ManualClock};
use sluicegate_throttle::layer::HoldUntil;
use tokio::sync::oneshot;

#[derive(Clone, Default)]
pub(crate) struct Handlers(Arc<Mutex<Handling>>);

#[derive(Default)]
struct Handling {
    clock: ManualClock,
    started: Vec<String>,
    waiting: VecDeque<oneshot::Sender<Reply>>,
}

/// What a handler answers.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) cost: Option<Cost>,
    pub(crate) hold_until: Option<HoldUntil>,
    pub(crate) cache_control: Option<&'static str>,
    pub(crate) grpc_status: Option<&'static str>,
    pub(crate) frames: usize,
    /// How long it works before its head is there, and for each frame.
    pub(crate) work: Duration,
    pub(crate) panics: bool,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            status: 200,
            cost: None,
            hold_until: None,
            cache_control: None,
            grpc_status: None,
            frames: 0,
            work: Duration::ZERO,
            panics: false,
        }
    }
}

impl Reply {
    /// A response whose body has `frames`.
    pub(crate) fn of(frames: usize) -> Self {
        Self { frames, ..Self::default() }
    }
}

impl Handlers {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        let handlers = Self::default();
        handlers.lock().clock = clock.clone();
        handlers
    }

    /// The requests that were started so far.
    pub(crate) fn started(&self) -> Vec<String> {
        self.lock().started.clone()
    }

    /// Lets the oldest handler that waits and still is there answer.
    pub(crate) fn answer(&self, reply: Reply) {
        let mut reply = Some(reply);
        while let Some(unsent) = reply.take() {
            let waiting = self.lock().waiting.pop_front().expect("no handler waits");
            reply = waiting.send(unsent).err();
        }
    }

    /// Nobody works for a millisecond, so the next request starts at once.
    pub(crate) fn rest(&self) {
        self.lock().clock.advance(Duration::from_millis(1));
    }

    /// A request is handled.
    pub(crate) async fn handle(self, path: String, is_less: bool) -> (Reply, Frames) {
        let (sender, receiver) = oneshot::channel();
        {
            let mut handling = self.lock();
            let less = if is_less { " less" } else { "" };
            handling.started.push(format!("{path}{less}"));
            handling.waiting.push_back(sender);
        }
        let reply = receiver.await.expect("an answer");
        let clock = self.lock().clock.clone();
        clock.advance(reply.work);
        assert!(!reply.panics, "the handler panics, as told");
        let frames = Frames { clock, work: reply.work, left: reply.frames };
        (reply, frames)
    }

    fn lock(&self) -> MutexGuard<'_, Handling> {
        self.0.lock().unwrap()
    }
}

/// A body that works for each of its frames.
pub(crate) struct Frames {
    clock: ManualClock,
    work: Duration,
    left: usize,
}

impl Frames {
    fn next(&mut self) -> Option<Bytes> {
        self.left = self.left.checked_sub(1)?;
        self.clock.advance(self.work);
        Some(Bytes::from_static(b"frame"))
    }
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}

impl MessageBody for Frames {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        if self.left == 0 { BodySize::None } else { BodySize::Stream }
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(self.next().map(Ok))
    }
}
