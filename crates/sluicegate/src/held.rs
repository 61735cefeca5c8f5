use http::HeaderMap;
use sluicegate_core::adapter::{AsEnforcer, Unsettled};
use sluicegate_core::condition::InFlightGuard;

/// What a request holds until its response has been sent. It is released on drop.
///
/// It is boxed, so that the type of a body does not depend on what it holds.
pub(crate) trait Held: Send + Sync {
    /// A part of the body has passed.
    fn passed(&mut self) {}

    /// The body ends with these trailers.
    fn saw_trailers(&mut self, trailers: &HeaderMap) {
        let _ = trailers;
    }
}

impl Held for InFlightGuard {}

impl<E: AsEnforcer + Send + Sync> Held for Unsettled<E, HeaderMap> {
    fn passed(&mut self) {
        Self::passed(self);
    }

    fn saw_trailers(&mut self, trailers: &HeaderMap) {
        Self::saw_trailers(self, || trailers.clone());
    }
}

/// The first line of a field.
pub(crate) fn find_line<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    headers.get(name).map(|value| value.as_bytes())
}
