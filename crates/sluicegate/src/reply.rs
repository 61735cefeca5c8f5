use http::{HeaderMap, Response};
use sluicegate_core::Cost;
use sluicegate_core::adapter::{Refused, Reply, ReplyHead, ReplyRecord};
use sluicegate_core::cost::RunningCost;

use crate::http_limit::HttpLines;

/// What rules can see of an `http` response.
#[derive(Debug)]
pub struct HttpReply<'a, B>(pub &'a Response<B>);

impl<B> Reply for HttpReply<'_, B> {
    fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.0.headers().get(name).map(|value| value.as_bytes())
    }

    fn cost(&self) -> Option<u64> {
        let running = self.0.extensions().get().and_then(RunningCost::amount);
        running.or_else(|| self.0.extensions().get().map(|Cost(cost)| *cost))
    }

    fn running(&self) -> Option<RunningCost> {
        self.0.extensions().get().cloned()
    }

    fn is_refusal(&self) -> bool {
        self.0.extensions().get::<Refused>().is_some()
    }
}

impl<B> ReplyHead for HttpReply<'_, B> {
    fn record(&self) -> ReplyRecord {
        ReplyRecord::new(self, HttpLines(self.0.headers().clone()))
    }
}

/// The first line of a field.
pub(crate) fn find_line<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    headers.get(name).map(|value| value.as_bytes())
}
