use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderName, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::outgoing::grpc;

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
