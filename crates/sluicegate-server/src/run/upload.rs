//! Bodies of requests in HTTP/1 that nobody reads to their end.
//!
//! hyper ends such a connection, but only after it has written an answer that does not say so. The client then sends its
//! next request on a connection that is closed. So the answer has to say it.

use std::error::Error;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Request, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::task::yield_now;

use super::activity::Activity;

/// How many bytes of a body are read that nobody wants, so that its connection can go on.
const UNWANTED: usize = 64 * 1024;

/// How often such a body is looked at. What has come by then is what the client has sent together with the head.
const LOOKS: usize = 8;

/// The body of a request, and the [`UnreadBody`] of it.
#[derive(Debug)]
pub(crate) struct Upload {
    /// `None` only while this is dropped.
    body: Option<Incoming>,
    state: Option<Arc<Mutex<State>>>,
}

/// Says whether the connection of a request can go on after its answer.
#[derive(Debug)]
pub(crate) struct UnreadBody {
    state: Option<Arc<Mutex<State>>>,
    /// The client sends its body only once it is told to.
    expects_continue: bool,
}

#[derive(Debug)]
enum State {
    Unread,
    Whole,
    /// What follows may not be the next request.
    Unclear,
    /// Nobody reads any more of this.
    Left(Incoming),
}

impl Upload {
    /// The request with this as its body. Only bodies of HTTP/1 are watched. HTTP/2 ends a stream instead of the connection.
    pub(crate) fn watch(request: Request<Incoming>) -> (Request<Self>, UnreadBody) {
        let is_watched = request.version() < Version::HTTP_2 && !request.body().is_end_stream();
        let state = is_watched.then(|| Arc::new(Mutex::new(State::Unread)));
        let expects_continue = request.headers().contains_key(header::EXPECT);
        let rest = UnreadBody { state: state.clone(), expects_continue };
        (request.map(|body| Self { body: Some(body), state }), rest)
    }

    /// Notes what reading has come to.
    fn note(&self, to: State) {
        let Some(state) = &self.state else { return };
        let mut state = lock(state);
        // The first note stands. A body that was read to its end is dropped afterwards, and must not count as left
        // behind. And once the answer is settled, which leaves `Unclear`, nobody looks any more: a body that is dropped
        // later ends here.
        if matches!(*state, State::Unread) {
            *state = to;
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        let is_end = body.is_end_stream();
        match &frame {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_ref() {
                    // hyper takes an empty line of another kind than usual for a part of the trailers, and the next
                    // request for the rest of them. It does not show the bytes, so what follows trailers is never read.
                    self.note(State::Unclear);
                    if trailers.is_empty() && self.state.is_some() {
                        return Poll::Ready(Some(Err(
                            "the body does not end in a valid way".into()
                        )));
                    }
                } else if is_end {
                    self.note(State::Whole);
                }
            }
            Some(Err(_)) => self.note(State::Unclear),
            // The end without trailers: hyper has seen the last chunk, or as many bytes as were declared.
            None => self.note(State::Whole),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            self.note(State::Left(body));
        }
    }
}

impl UnreadBody {
    /// Writes `Connection: close` into the head of an answer if the connection ends after it, because the body is not read
    /// to its end. A short body that has come is read first.
    pub(crate) async fn settle(self, answer: &mut HeaderMap, activity: &Activity) {
        if !self.read().await {
            close_unread(answer, activity);
        }
    }

    /// Returns whether the body has been read to its end.
    async fn read(self) -> bool {
        let Some(state) = &self.state else { return true };
        // Taken out under the lock: reading the rest awaits, and the lock must not be held meanwhile.
        let before = mem::replace(&mut *lock(state), State::Unclear);
        match before {
            State::Whole => true,
            State::Left(body) if !self.expects_continue => is_soon_read(body).await,
            // `Unread`: the handler has answered and still holds the body, so it may read it after the head of the
            // answer was written. A client that expects to be told to continue has sent nothing. Reading would tell it
            // to send a body that nobody wants.
            State::Left(_) | State::Unread | State::Unclear => false,
        }
    }
}

/// Says that an answer in HTTP/1 is the last one on its connection.
pub(crate) fn close(answer: &mut HeaderMap) {
    answer.insert(header::CONNECTION, HeaderValue::from_static("close"));
}

/// Like [`close`], for a request whose body may still be on its way. The client can send what is left for a moment, so that
/// it reads this answer: see [`TimedStream`](super::TimedStream).
pub(crate) fn close_unread(answer: &mut HeaderMap, activity: &Activity) {
    close(answer);
    activity.leave_body();
}

/// Reads what has come of a body, and returns whether that was all of it.
async fn is_soon_read(mut body: Incoming) -> bool {
    let mut left = UNWANTED;
    for _ in 0..LOOKS {
        // Polled without waiting: a client that sends slowly must not delay the answer.
        while let Poll::Ready(frame) =
            poll_fn(|cx| Poll::Ready(Pin::new(&mut body).poll_frame(cx))).await
        {
            let length = match frame {
                None => return true,
                Some(Ok(frame)) => frame.into_data().map(|data| data.len()),
                Some(Err(_)) => return false,
            };
            match length.ok().and_then(|length| left.checked_sub(length)) {
                Some(rest) => left = rest,
                None => return false,
            }
            if body.is_end_stream() {
                return true;
            }
        }
        // hyper hands over the next piece in between.
        yield_now().await;
    }
    false
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
