//! Reports shed requests as `tracing` events, and makes the span around a wait.

#[cfg(feature = "tracing")]
use crate::class::Classes;
#[cfg(feature = "tracing")]
use crate::scheduler::Shed;

/// The `tracing` span `throttle`, around the time in which a request waits. Without the feature `tracing` it is nothing.
#[derive(Debug)]
pub(super) struct WaitSpan {
    /// Boxed, because it is larger than all the rest of a place in the queue, and `None` where nothing records it.
    #[cfg(feature = "tracing")]
    span: Option<Box<tracing::Span>>,
}

impl WaitSpan {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: Some(tracing::info_span!("throttle"))
                .filter(|span| !span.is_disabled())
                .map(Box::new),
        }
    }

    /// Runs `run` within the span.
    pub(super) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.span.as_deref().map(tracing::Span::enter);
        run()
    }
}

/// A request is shed.
#[cfg(feature = "tracing")]
pub(super) fn shed(throttle: &str, classes: &Classes, shed: &Shed) {
    tracing::debug!(
        throttle,
        class = classes.name(shed.class),
        reason = shed.reason.as_str(),
        retry_after_ms = shed.retry_after / 1_000,
        "a request is shed"
    );
}

/// At most one a second.
#[cfg(feature = "tracing")]
pub(super) fn unreadable(throttle: &str, counts: super::snapshot::UnreadCounts) {
    tracing::warn!(
        throttle,
        classes = counts.classes,
        deadlines = counts.deadlines,
        keys = counts.keys,
        "classes, deadlines or keys of requests cannot be read: their defaults are used"
    );
}

/// Once for each header: all its requests are of one class, and nobody would know why.
pub(super) fn unbelieved(header: &str, why: std::fmt::Arguments<'_>) {
    #[cfg(feature = "tracing")]
    tracing::warn!(header, "the class that requests state in a header is not believed: {why}");
    #[cfg(not(feature = "tracing"))]
    let _ = (header, why);
}
