use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;

use crate::scheduler::Shed;

/// Makes the response of a request that is refused.
#[derive(Clone, Default)]
pub(super) struct Respond(Option<Arc<RespondFn>>);

pub(super) type RespondFn = dyn Fn(&Shed, &Parts) -> Response<Bytes> + Send + Sync;

impl Respond {
    pub(super) fn with(
        respond: impl Fn(&Shed, &Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(respond)))
    }

    /// Whether the operator has given a function.
    #[cfg(feature = "tower")]
    pub(super) const fn is_own(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn function(&self) -> Option<&RespondFn> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Respond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Respond")
    }
}
