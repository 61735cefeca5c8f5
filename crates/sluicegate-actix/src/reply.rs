use actix_web::dev::ServiceResponse;
use actix_web::http::header::HeaderMap;
use actix_web::{Error, HttpMessage};
use sluicegate_core::Cost;
use sluicegate_core::adapter::{HeaderLines, Refused, Reply, ReplyHead, ReplyRecord};
use sluicegate_core::cost::RunningCost;

/// What rules can see of a response.
pub(crate) struct ActixReply<'a, B>(pub(crate) &'a ServiceResponse<B>);

impl<B> ActixReply<'_, B> {
    /// From the response's extensions, else from the request's, which extractors and middleware reach
    /// more easily.
    fn left<T: Clone + 'static>(&self) -> Option<T> {
        let in_response = self.0.response().extensions().get().cloned();
        in_response.or_else(|| self.0.request().extensions().get().cloned())
    }
}

impl<B> Reply for ActixReply<'_, B> {
    fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.0.headers().get(name).map(|value| value.as_bytes())
    }

    fn cost(&self) -> Option<u64> {
        let running = self.left::<RunningCost>().and_then(|running| running.amount());
        running.or_else(|| self.left().map(|Cost(cost)| cost))
    }

    fn running(&self) -> Option<RunningCost> {
        self.left()
    }

    fn is_refusal(&self) -> bool {
        self.0.response().extensions().contains::<Refused>()
    }
}

/// What rules can see of an error from an inner middleware: in actix-web it is a response that is not written yet.
pub(crate) struct ErrorReply<'a>(pub(crate) &'a Error);

impl Reply for ErrorReply<'_> {
    fn status(&self) -> u16 {
        self.0.as_response_error().status_code().as_u16()
    }

    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn cost(&self) -> Option<u64> {
        None
    }

    fn running(&self) -> Option<RunningCost> {
        None
    }

    fn is_refusal(&self) -> bool {
        false
    }
}

impl<B> ReplyHead for ActixReply<'_, B> {
    fn record(&self) -> ReplyRecord {
        ReplyRecord::new(self, ActixLines(self.0.headers().clone()))
    }
}

impl ReplyHead for ErrorReply<'_> {
    fn record(&self) -> ReplyRecord {
        ReplyRecord::new(self, ActixLines(HeaderMap::new()))
    }
}

/// Header fields of a response.
struct ActixLines(HeaderMap);

impl HeaderLines for ActixLines {
    fn first_line(&self, name: &str) -> Option<&[u8]> {
        find_line(&self.0, name)
    }
}

/// The first line of a field.
pub(crate) fn find_line<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    headers.get(name).map(|value| value.as_bytes())
}
