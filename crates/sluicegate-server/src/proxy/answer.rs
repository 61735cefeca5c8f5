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
#[expect(clippy::large_enum_variant, reason = "the large one needs no allocation")]
pub(crate) enum AnswerBody {
    /// `None` once it has ended.
    Plain(Option<ResponseInFlight>),
    /// It is given up if its client does not read it.
    Watched(StallGuard<ResponseInFlight>),
}

/// What lives as long as the body.
pub(crate) struct ResponseInFlight {
    body: StackBody,
    record: Record,
    _in_flight: InFlight,
}

impl AnswerBody {
    /// The body is watched if there are `stalls`.
    pub(crate) fn new(
        body: StackBody,
        mut record: Record,
        in_flight: InFlight,
        stalls: Option<&Arc<Stalls<ResponseInFlight>>>,
    ) -> Self {
        if body.is_end_stream() {
            record.ended();
        }
        let held = ResponseInFlight { body, record, _in_flight: in_flight };
        match stalls {
            None => Self::Plain(Some(held)),
            Some(stalls) => Self::Watched(stalls.watch(held)),
        }
    }

    /// What `look` makes of the body; `None` if it has ended or was given up.
    fn with<T>(&self, look: impl FnOnce(&ResponseInFlight) -> T) -> Option<T> {
        match self {
            Self::Plain(held) => held.as_ref().map(look),
            Self::Watched(watched) => watched.with(|held| look(held)),
        }
    }
}

impl ResponseInFlight {
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
        let frame = match &mut *self {
            Self::Plain(None) => Poll::Ready(None),
            Self::Plain(Some(held)) => held.poll(cx),
            Self::Watched(watched) => {
                let frame = watched.with(|held| held.poll(cx)).unwrap_or_else(|| {
                    Poll::Ready(Some(Err("the client did not read the response in time".into())))
                });
                watched.asked(frame.is_pending());
                frame
            }
        };
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            // The request is no longer in flight, whenever hyper drops this.
            *self = Self::Plain(None);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Plain(None))
            || self.with(|held| held.body.is_end_stream()) == Some(true)
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|held| held.body.size_hint()).unwrap_or_default()
    }
}
