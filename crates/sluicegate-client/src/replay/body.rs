use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::outgoing::grpc;

/// The most frames that are read ahead. A body could have any number of empty ones.
const FRAMES: usize = 64;

/// The body of a request, kept whole or read as it comes.
pub struct ReplayBody<B: Body>(Kind<B>);

enum Kind<B: Body> {
    Whole { data: Bytes, trailers: Option<HeaderMap> },
    Once { read: VecDeque<Result<Frame<Bytes>, B::Error>>, rest: B, has_ended: bool },
}

impl<B: Body<Data = Bytes> + Unpin> ReplayBody<B> {
    /// Reads `body` as far as it is there at once, up to `most` bytes.
    pub(super) fn read(body: B, most: usize, is_grpc: bool) -> Self {
        let mut read = VecDeque::new();
        let mut rest = body;
        let (mut bytes, mut has_ended, mut fits) = (0, false, true);
        if rest.size_hint().lower() > most as u64 {
            return Self(Kind::Once { read, rest, has_ended });
        }
        // If there is nothing yet, the transport asks again when it sends the body.
        let mut cx = Context::from_waker(Waker::noop());
        while fits && !has_ended && read.len() < FRAMES {
            match Pin::new(&mut rest).poll_frame(&mut cx) {
                Poll::Ready(None) => has_ended = true,
                Poll::Ready(Some(frame)) => {
                    bytes += frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len);
                    fits = frame.is_ok() && bytes <= most;
                    read.push_back(frame);
                }
                Poll::Pending => fits = false,
            }
        }
        let once = |read| Self(Kind::Once { read, rest, has_ended });
        if !has_ended {
            return once(read);
        }
        let (data, trailers) = join(&read);
        if is_grpc && !is_one(&data) {
            return once(read);
        }
        Self(Kind::Whole { data, trailers })
    }

    /// A second one; `None` if it can be read only once.
    pub(super) fn try_clone(&self) -> Option<Self> {
        match &self.0 {
            Kind::Whole { data, trailers } => {
                Some(Self(Kind::Whole { data: data.clone(), trailers: trailers.clone() }))
            }
            Kind::Once { .. } => None,
        }
    }

    /// Whether it is kept.
    pub(super) const fn is_whole(&self) -> bool {
        matches!(self.0, Kind::Whole { .. })
    }
}

/// The data and the trailers of frames, of which none is an error.
fn join<E>(frames: &VecDeque<Result<Frame<Bytes>, E>>) -> (Bytes, Option<HeaderMap>) {
    let mut data = frames.iter().flatten().filter_map(Frame::data_ref);
    let trailers = frames.iter().flatten().find_map(Frame::trailers_ref).cloned();
    let first = data.next().cloned().unwrap_or_default();
    let Some(second) = data.next() else { return (first, trailers) };
    let mut joined = BytesMut::from(first);
    [second].into_iter().chain(data).for_each(|more| joined.extend_from_slice(more));
    (joined.freeze(), trailers)
}

/// Errors that were read are not pinned.
impl<B: Body + Unpin> Unpin for ReplayBody<B> {}

impl<B: Body<Data = Bytes> + Unpin> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.0 {
            Kind::Whole { data, .. } if !data.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(data)))))
            }
            Kind::Whole { trailers, .. } => {
                Poll::Ready(trailers.take().map(Frame::trailers).map(Ok))
            }
            Kind::Once { read, rest, has_ended } => match read.pop_front() {
                Some(frame) => Poll::Ready(Some(frame)),
                None if *has_ended => Poll::Ready(None),
                None => Pin::new(rest).poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole { data, trailers } => data.is_empty() && trailers.is_none(),
            Kind::Once { read, rest, has_ended } => {
                read.is_empty() && (*has_ended || rest.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole { data, .. } => SizeHint::with_exact(data.len() as u64),
            Kind::Once { read, rest, has_ended } => {
                let data = read.iter().flatten().filter_map(Frame::data_ref);
                let bytes: usize = data.map(Bytes::len).sum();
                let rest = if *has_ended { SizeHint::with_exact(0) } else { rest.size_hint() };
                let mut hint = SizeHint::new();
                hint.set_lower(rest.lower().saturating_add(bytes as u64));
                if let Some(upper) = rest.upper() {
                    hint.set_upper(upper.saturating_add(bytes as u64));
                }
                hint
            }
        }
    }
}

impl<B: Body> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Whole { data, .. } => write!(f, "ReplayBody({} bytes)", data.len()),
            Kind::Once { .. } => f.write_str("ReplayBody(once)"),
        }
    }
}

/// Whether `body` is exactly one message of gRPC: a flag, the length in four bytes, and as many bytes.
fn is_one(body: &[u8]) -> bool {
    let Some((prefix, message)) = body.split_first_chunk::<5>() else { return false };
    let [_, length @ ..] = *prefix;
    u64::from(u32::from_be_bytes(length)) == message.len() as u64
}

static STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The body of a response of which a frame may have been read already.
pub struct ReplayResponse<B: Body> {
    first: Option<Result<Frame<Bytes>, B::Error>>,
    rest: Option<B>,
}

/// An error that was read is not pinned.
impl<B: Body + Unpin> Unpin for ReplayResponse<B> {}

impl<B: Body<Data = Bytes> + Unpin> Body for ReplayResponse<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let first = self.first.as_ref().and_then(|first| first.as_ref().ok()?.data_ref());
        let bytes = first.map_or(0, |data| data.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(bytes));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(bytes));
        }
        hint
    }
}

impl<B: Body> fmt::Debug for ReplayResponse<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplayResponse")
    }
}

pin_project! {
    /// The response.
    pub struct ResponseFuture<F, B> {
        #[pin]
        response: F,
        // Whether a status in the trailers is looked for.
        looks_on: bool,
        // The head, while its first frame is awaited.
        begun: Option<Response<B>>,
    }
}

impl<F, B> ResponseFuture<F, B> {
    pub(super) const fn new(response: F, looks_on: bool) -> Self {
        Self { response, looks_on, begun: None }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes> + Unpin,
{
    type Output = Result<Response<ReplayResponse<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.begun.is_none() {
            let response = ready!(this.response.poll(cx))?;
            if !*this.looks_on || !may_fail_late(&response) {
                return Poll::Ready(Ok(
                    response.map(|rest| ReplayResponse { first: None, rest: Some(rest) })
                ));
            }
            *this.begun = Some(response);
        }
        let response = this.begun.as_mut().expect("it has begun");
        let first = ready!(Pin::new(response.body_mut()).poll_frame(cx));
        let response = this.begun.take().expect("it has begun");
        Poll::Ready(Ok(with_first(response, first)))
    }
}

/// Whether the status of a call may come in trailers.
fn may_fail_late<B: Body>(response: &Response<B>) -> bool {
    let headers = response.headers();
    !headers.contains_key(&STATUS) && grpc::is_call(headers) && !response.body().is_end_stream()
}

/// A failure in trailers behind no message goes into the header.
fn with_first<B: Body>(
    response: Response<B>,
    first: Option<Result<Frame<Bytes>, B::Error>>,
) -> Response<ReplayResponse<B>> {
    let (mut head, rest) = response.into_parts();
    let failure = match &first {
        Some(Ok(frame)) => frame.trailers_ref().filter(|trailers| {
            trailers.get(&STATUS).is_some_and(|status| status.as_bytes() != b"0")
        }),
        _ => None,
    };
    if let Some(failure) = failure {
        for name in failure.keys() {
            head.headers.remove(name);
        }
        for (name, value) in failure {
            head.headers.append(name, value.clone());
        }
        return Response::from_parts(head, ReplayResponse { first: None, rest: None });
    }
    let rest = first.is_some().then_some(rest);
    Response::from_parts(head, ReplayResponse { first, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_is_told_from_none_two_and_a_half() {
        assert!(is_one(&[0, 0, 0, 0, 0]));
        assert!(is_one(&[1, 0, 0, 0, 2, 7, 7]));
        for other in [&[][..], &[0], &[0, 0, 0, 0, 2, 7], &[0; 10], &[0, 0, 0, 0, 1, 7, 7]] {
            assert!(!is_one(other), "{other:?}");
        }
    }
}
