//! What is done with a request once the store has answered.

use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::{HttpMessage, HttpResponse};
use tollgate_core::{
    Charge, Decision, Degraded, Missing, OnStoreError, Refusal, Refused, Step, Store, StoreError,
    Ticket,
};

use crate::headers::ActixHeaders;
use crate::middleware::Policy;

/// What the decision makes of a request.
pub(crate) enum Judged<S: Store> {
    Forward(ServiceRequest, Paid<S>),
    Wait(ServiceRequest, Duration, Ticket<S>),
    Answer(ServiceResponse<BoxBody>),
}

/// What a forwarded request has paid.
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each request")]
pub(crate) enum Paid<S: Store> {
    /// A charge, to be settled.
    Ticket(Ticket<S>),
    /// Nothing: it was refused, and is served all the same.
    Nothing(Decision),
    /// Nothing, and nothing is known of it.
    Unknown,
}

impl<S: Store + Clone> Policy<S> {
    pub(crate) fn judge(
        &self,
        decision: Result<Decision, StoreError>,
        charge: Charge,
        request: ServiceRequest,
    ) -> Judged<S> {
        let decision = match decision {
            Ok(decision) => decision,
            Err(error) => return self.without_store(error, request),
        };
        let step = self.gate.judge(&decision);
        if self.extensions && !matches!(step, Step::Redirect(_) | Step::Reject) {
            request.extensions_mut().insert(decision.clone());
        }
        let counters = &self.tally.counters;
        match step {
            Step::Forward => {
                let ticket = Ticket::new(self.store.clone(), charge, decision);
                Judged::Forward(request, Paid::Ticket(ticket))
            }
            Step::Wait(wait) => {
                counters.waited.add();
                let ticket = Ticket::new(self.store.clone(), charge, decision);
                Judged::Wait(request, wait, ticket)
            }
            Step::Degrade => {
                counters.degraded.add();
                request.extensions_mut().insert(Degraded);
                Judged::Forward(request, Paid::Nothing(decision))
            }
            Step::Shadow => {
                counters.shadowed.add();
                tracing::info!(retry_after = ?decision.retry_after(), "would have been refused");
                Judged::Forward(request, Paid::Unknown)
            }
            Step::Redirect(redirect) => {
                counters.redirected.add();
                let refusal = Refusal::TooMany(decision);
                let mut response = self.respond.to(&refusal, request.request());
                *response.status_mut() =
                    StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::TEMPORARY_REDIRECT);
                redirect.write(&mut ActixHeaders(response.headers_mut()));
                Judged::Answer(self.mark(refusal, response, request))
            }
            Step::Reject => {
                counters.refused.add();
                tracing::debug!(retry_after = ?decision.retry_after(), "refused");
                Judged::Answer(self.refuse(Refusal::TooMany(decision), request))
            }
        }
    }

    /// The store's failure is not the client's doing: it passes, or is told so.
    fn without_store(&self, error: StoreError, request: ServiceRequest) -> Judged<S> {
        self.tally.counters.store_failures.add();
        let source = std::error::Error::source(&error);
        tracing::warn!(source, then = ?self.on_store_error, "no decision: {error}");
        match self.on_store_error {
            OnStoreError::Admit => Judged::Forward(request, Paid::Unknown),
            OnStoreError::Refuse => {
                Judged::Answer(self.refuse(Refusal::Unavailable(error), request))
            }
        }
    }
}

impl<S> Policy<S> {
    pub(crate) fn refuse_keyless(
        &self,
        missing: Missing,
        request: ServiceRequest,
    ) -> ServiceResponse<BoxBody> {
        self.tally.counters.keyless.add();
        if missing.is_server() {
            tracing::error!("{missing}");
        }
        self.refuse(Refusal::Missing(missing), request)
    }

    fn refuse(&self, refusal: Refusal, request: ServiceRequest) -> ServiceResponse<BoxBody> {
        let mut response = self.respond.to(&refusal, request.request());
        self.fields.write_refusal(&refusal, &mut ActixHeaders(response.headers_mut()));
        self.mark(refusal, response, request)
    }

    /// Tells middleware further out what happened here.
    fn mark(
        &self,
        refusal: Refusal,
        mut response: HttpResponse,
        request: ServiceRequest,
    ) -> ServiceResponse<BoxBody> {
        let mut extensions = response.extensions_mut();
        extensions.insert(Refused);
        if let (Refusal::TooMany(decision), true) = (refusal, self.extensions) {
            extensions.insert(decision);
        }
        drop(extensions);
        request.into_response(response)
    }
}
