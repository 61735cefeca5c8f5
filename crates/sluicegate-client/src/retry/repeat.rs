use std::fmt;
use std::sync::Arc;

use http::{HeaderName, Method};
use sluicegate::condition::Condition;

use crate::outgoing::{OutgoingRequest, OutgoingView};

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Which requests do no harm when they arrive twice.
///
/// By default those with a method that is idempotent (RFC 9110, 9.2.2), and those with an `Idempotency-Key`.
#[derive(Clone, Default)]
pub(crate) struct Repeatable(Option<Arc<dyn Told + Send + Sync>>);

trait Told {
    fn surely_holds(&self, view: &OutgoingView<'_>) -> bool;
}

struct When<C>(C);

impl<C> Told for When<C>
where
    C: for<'a> Condition<OutgoingView<'a>>,
{
    fn surely_holds(&self, view: &OutgoingView<'_>) -> bool {
        // A condition that cannot be told does not make a request safe.
        self.0.surely_holds(view).unwrap_or(false)
    }
}

impl Repeatable {
    /// Those for which `condition` holds for certain, too.
    pub(crate) fn when<C>(condition: C) -> Self
    where
        C: for<'a> Condition<OutgoingView<'a>> + Send + Sync + 'static,
    {
        Self(Some(Arc::new(When(condition))))
    }

    /// Whether `request` may arrive twice.
    pub(crate) fn holds(&self, request: &impl OutgoingRequest) -> bool {
        let idempotent = matches!(
            *request.method(),
            Method::GET
                | Method::HEAD
                | Method::PUT
                | Method::DELETE
                | Method::OPTIONS
                | Method::TRACE
        );
        idempotent
            || request.headers().contains_key(&IDEMPOTENCY_KEY)
            || self.0.as_ref().is_some_and(|told| told.surely_holds(&OutgoingView::new(request)))
    }
}

impl fmt::Debug for Repeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Repeatable").field(&self.0.is_some()).finish()
    }
}
