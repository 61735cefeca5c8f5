use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::run::InFlight;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::proxy::record::Record;
use crate::proxy::response_body::{BoxError, StackBody};
use crate::proxy::stalls::{StallGuard, Stalls};

type Piece = Option<Result<Frame<Bytes>, BoxError>>;

/// The body of a response as it leaves: once it ends, its request is no longer in flight.
pub(crate) struct AnswerBody {
    body: Kind,
    has_ended: bool,
}

#[expect(clippy::large_enum_variant, reason = "the large one needs no allocation")]
enum Kind {
    Plain(Option<ResponseInFlight>),
    StallGuard(StallGuard<ResponseInFlight>),
}

/// What lives as long as the body.
pub(crate) struct ResponseInFlight {
    body: StackBody,
    record: Record,
    _in_flight: InFlight,
}

impl AnswerBody {
    pub(crate) fn new(body: StackBody, record: Record, in_flight: InFlight) -> Self {
        let held = ResponseInFlight::new(body, record, in_flight);
        Self { body: Kind::Plain(Some(held)), has_ended: false }
    }

    /// Like `new`, but the body is given up if its client does not read it.
    pub(crate) fn watched(
        body: StackBody,
        record: Record,
        in_flight: InFlight,
        stalls: &Arc<Stalls<ResponseInFlight>>,
    ) -> Self {
        let held = ResponseInFlight::new(body, record, in_flight);
        Self { body: Kind::StallGuard(stalls.watch(held)), has_ended: false }
    }

    /// What `look` makes of the body; `None` if it has ended or was given up.
    fn with<T>(&self, look: impl FnOnce(&ResponseInFlight) -> T) -> Option<T> {
        match &self.body {
            Kind::Plain(held) => held.as_ref().map(look),
            Kind::StallGuard(watched) => watched.with(|held| look(held)),
        }
    }
}

impl ResponseInFlight {
    fn new(body: StackBody, mut record: Record, in_flight: InFlight) -> Self {
        if body.is_end_stream() {
            record.ended();
        }
        Self { body, record, _in_flight: in_flight }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = &frame {
            match frame {
                Some(Ok(frame)) => self.record.sent(frame.data_ref().map_or(0, Bytes::len)),
                Some(Err(_)) => {}
                None => self.record.ended(),
            }
            // Nobody asks for the end of a body whose length is known.
            if self.body.is_end_stream() {
                self.record.ended();
            }
        }
        frame
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Piece> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let frame = match &mut self.body {
            Kind::Plain(held) => held.as_mut().map(|held| held.poll(cx)),
            Kind::StallGuard(watched) => watched.with(|held| held.poll(cx)),
        };
        let frame = frame.unwrap_or_else(|| {
            Poll::Ready(Some(Err("the client did not read the response in time".into())))
        });
        if let Kind::StallGuard(watched) = &self.body {
            watched.asked(frame.is_pending());
        }
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            // The request is no longer in flight, whenever hyper drops this.
            (self.body, self.has_ended) = (Kind::Plain(None), true);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || self.with(|held| held.body.is_end_stream()).unwrap_or(false)
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|held| held.body.size_hint()).unwrap_or_default()
    }
}
