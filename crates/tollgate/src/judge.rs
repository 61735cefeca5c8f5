//! What is done with a request once the store has answered.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use tollgate_core::{
    Charge, Decision, Degraded, OnStoreError, Refusal, Refused, Step, Store, StoreError, Ticket,
};

use crate::headers::HttpHeaders;
use crate::layer::Policy;
use crate::respond::Respond;

/// What the decision makes of a request.
pub(crate) enum Judged<B, S: Store, ResBody> {
    Forward(Request<B>, Paid<S>),
    Wait(Request<B>, Duration, Ticket<S>),
    Answer(Response<ResBody>),
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

impl<S: Store + Clone, P> Policy<S, P> {
    pub(crate) fn judge<B, ResBody>(
        &self,
        decision: Result<Decision, StoreError>,
        charge: Charge,
        mut request: Request<B>,
    ) -> Judged<B, S, ResBody>
    where
        P: Respond<B, ResBody>,
    {
        let decision = match decision {
            Ok(decision) => decision,
            Err(error) => return self.without_store(error, request),
        };
        let step = self.gate.judge(&decision);
        if self.extensions && !matches!(step, Step::Redirect(_) | Step::Reject) {
            request.extensions_mut().insert(decision.clone());
        }
        match step {
            Step::Forward => {
                let ticket = Ticket::new(self.store.clone(), charge, decision);
                Judged::Forward(request, Paid::Ticket(ticket))
            }
            Step::Wait(wait) => {
                self.counters.waited.add();
                let ticket = Ticket::new(self.store.clone(), charge, decision);
                Judged::Wait(request, wait, ticket)
            }
            Step::Degrade => {
                self.counters.degraded.add();
                request.extensions_mut().insert(Degraded);
                Judged::Forward(request, Paid::Nothing(decision))
            }
            Step::Shadow => {
                self.counters.shadowed.add();
                tracing::info!(retry_after = ?decision.retry_after(), "would have been refused");
                Judged::Forward(request, Paid::Unknown)
            }
            Step::Redirect(redirect) => {
                self.counters.redirected.add();
                let refusal = Refusal::TooMany(decision);
                let mut response = self.respond.respond(&refusal, &request);
                *response.status_mut() =
                    StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::TEMPORARY_REDIRECT);
                redirect.write(&mut HttpHeaders(response.headers_mut()));
                Judged::Answer(self.mark(refusal, response))
            }
            Step::Reject => {
                self.counters.refused.add();
                tracing::debug!(retry_after = ?decision.retry_after(), "refused");
                Judged::Answer(self.refuse(Refusal::TooMany(decision), &request))
            }
        }
    }

    /// The store's failure is not the client's doing: it passes, or is told so.
    fn without_store<B, ResBody>(
        &self,
        error: StoreError,
        request: Request<B>,
    ) -> Judged<B, S, ResBody>
    where
        P: Respond<B, ResBody>,
    {
        self.counters.store_failures.add();
        let source = std::error::Error::source(&error);
        tracing::warn!(source, then = ?self.on_store_error, "no decision: {error}");
        match self.on_store_error {
            OnStoreError::Admit => Judged::Forward(request, Paid::Unknown),
            OnStoreError::Refuse => {
                Judged::Answer(self.refuse(Refusal::Unavailable(error), &request))
            }
        }
    }
}

impl<S, P> Policy<S, P> {
    pub(crate) fn refuse<B, ResBody>(
        &self,
        refusal: Refusal,
        request: &Request<B>,
    ) -> Response<ResBody>
    where
        P: Respond<B, ResBody>,
    {
        let mut response = self.respond.respond(&refusal, request);
        self.fields.write_refusal(&refusal, &mut HttpHeaders(response.headers_mut()));
        self.mark(refusal, response)
    }

    /// Tells layers further out what happened here.
    fn mark<ResBody>(
        &self,
        refusal: Refusal,
        mut response: Response<ResBody>,
    ) -> Response<ResBody> {
        let extensions = response.extensions_mut();
        extensions.insert(Refused);
        if let (Refusal::TooMany(decision), true) = (refusal, self.extensions) {
            extensions.insert(decision);
        }
        response
    }
}
