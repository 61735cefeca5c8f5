use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::EstimateReader;

pin_project! {
    /// The body of a request behind an [`EstimateLayer`](crate::EstimateLayer).
    ///
    /// One that was read whole has the same bytes, in one frame, and the same trailers. If reading failed, it fails in the same
    /// way behind the bytes that came before. One of a request that had an estimate already is as it came.
    pub struct ReadBody<B: Body> {
        #[pin]
        state: State<B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<B: Body> {
        Read { data: Bytes, end: Option<Result<HeaderMap, B::Error>> },
        Unread { #[pin] body: B },
    }
}

impl<B: Body> ReadBody<B> {
    const fn read(data: Bytes, end: Option<Result<HeaderMap, B::Error>>) -> Self {
        Self { state: State::Read { data, end } }
    }

    /// A body as it came.
    pub(super) const fn unread(body: B) -> Self {
        Self { state: State::Unread { body } }
    }
}

impl<B: Body<Data = Bytes>> Body for ReadBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().state.project() {
            StateProj::Read { data, .. } if !data.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(data)))))
            }
            StateProj::Read { end, .. } => {
                Poll::Ready(end.take().map(|end| end.map(Frame::trailers)))
            }
            StateProj::Unread { body } => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Read { data, end } => data.is_empty() && end.is_none(),
            State::Unread { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Read { data, .. } => SizeHint::with_exact(data.len() as u64),
            State::Unread { body } => body.size_hint(),
        }
    }
}

impl<B: Body> fmt::Debug for ReadBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Read { .. } => "ReadBody(read)",
            State::Unread { .. } => "ReadBody(unread)",
        })
    }
}

/// The part of a body that was read. Its bytes are joined, because a body in many small frames would take many times
/// its length.
#[derive(Debug)]
pub(super) struct Reading<E> {
    first: Bytes,
    joined: BytesMut,
    most: usize,
    end: Option<Result<HeaderMap, E>>,
}

impl<E> Reading<E> {
    pub(super) fn new(most: usize) -> Self {
        Self { first: Bytes::new(), joined: BytesMut::new(), most, end: None }
    }

    /// Reads `body` to its end, and shows it to `reader`. Returns `None` if it is too large.
    pub(super) fn poll<B>(
        &mut self,
        mut body: Pin<&mut B>,
        cx: &mut Context<'_>,
        reader: &mut EstimateReader,
    ) -> Poll<Option<ReadBody<B>>>
    where
        B: Body<Data = Bytes, Error = E>,
    {
        while self.end.is_none() {
            let frame = match ready!(body.as_mut().poll_frame(cx)) {
                None => break,
                Some(Err(error)) => {
                    self.end = Some(Err(error));
                    break;
                }
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(data) => {
                    if data.len() > self.most - self.length() {
                        return Poll::Ready(None);
                    }
                    reader.read(&data);
                    self.add(data);
                }
                Err(frame) => self.end = frame.into_trailers().ok().map(Ok),
            }
        }
        let (data, end) = self.whole();
        Poll::Ready(Some(ReadBody::read(data, end)))
    }

    fn length(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn add(&mut self, data: Bytes) {
        if self.length() == 0 {
            self.first = data;
            return;
        }
        self.joined.extend_from_slice(&std::mem::take(&mut self.first));
        self.joined.extend_from_slice(&data);
    }

    fn whole(&mut self) -> (Bytes, Option<Result<HeaderMap, E>>) {
        let joined = std::mem::take(&mut self.joined).freeze();
        let first = std::mem::take(&mut self.first);
        (if joined.is_empty() { first } else { joined }, self.end.take())
    }
}
