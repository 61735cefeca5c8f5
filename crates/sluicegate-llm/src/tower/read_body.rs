use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::EstimateReader;

/// The body of a request that was read whole: the same bytes, in one frame, and the same trailers. If reading failed, it
/// fails in the same way behind the bytes that came before.
pub struct ReadBody<E> {
    data: Bytes,
    end: Option<Result<HeaderMap, E>>,
}

impl<E> Body for ReadBody<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let this = self.get_mut();
        if !this.data.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.data)))));
        }
        Poll::Ready(this.end.take().map(|end| end.map(Frame::trailers)))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && self.end.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.len() as u64)
    }
}

impl<E> Unpin for ReadBody<E> {}

impl<E> fmt::Debug for ReadBody<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBody").field("length", &self.data.len()).finish_non_exhaustive()
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
        reader: &mut Option<EstimateReader>,
    ) -> Poll<Option<ReadBody<E>>>
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
                    if let Some(reader) = reader {
                        reader.read(&data);
                    }
                    self.add(data);
                }
                Err(frame) => self.end = frame.into_trailers().ok().map(Ok),
            }
        }
        Poll::Ready(Some(self.whole()))
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

    fn whole(&mut self) -> ReadBody<E> {
        let joined = std::mem::take(&mut self.joined).freeze();
        let first = std::mem::take(&mut self.first);
        ReadBody { data: if joined.is_empty() { first } else { joined }, end: self.end.take() }
    }
}
