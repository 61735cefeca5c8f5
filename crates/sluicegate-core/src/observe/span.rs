//! Spans are around what takes time. `rate_limit` is opened for a decision that has to be awaited and for a
//! wait, and is closed before the service is called. A decision that is made at once has none.

use std::fmt;

/// The `tracing` span `rate_limit` around a decision that has to be awaited, a wait, or both in turn. A decision that
/// is available at once has no span. Without the feature `tracing` it is empty.
#[derive(Clone)]
pub(crate) struct DecisionSpan {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl DecisionSpan {
    /// Begins with a decision, or with a wait.
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!("rate_limit"),
        }
    }

    /// Runs `run` within the span.
    pub(crate) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.span.enter();
        run()
    }
}

impl fmt::Debug for DecisionSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecisionSpan")
    }
}
