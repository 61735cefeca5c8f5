//! How a call is decided.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sluicegate_core::adapter::{Charge, fields};
use sluicegate_core::limit::Decision;
use sluicegate_core::store::{OnStoreError, Store};

use super::answer::Decided;
use super::asked::Asked;
use super::tickets::Tickets;
use crate::charge::charge;
use crate::reserved::Reserved;
use crate::service::Service;
use crate::status::Ended;
use crate::undecided::Undecided;

/// What the calls share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(super) service: Service,
    pub(super) tickets: Tickets,
}

impl Context {
    /// Without open tickets.
    pub(crate) fn new(service: &Service) -> Self {
        Self { service: service.clone(), tickets: Tickets::new(service.clock()) }
    }

    pub(super) async fn take(&self, asked: Asked) -> Outcome {
        let reserve = asked.reserve;
        let owed = match self.owed(asked) {
            Ok(owed) => owed,
            Err(outcome) => return *outcome,
        };
        if reserve && !self.tickets.has_room() {
            return Outcome::failed(503, "there are too many open tickets");
        }
        let begun = self.service.board().latency().begin();
        let taken = self.service.take(&owed, self.service.deadline()).await;
        let ended = match &taken {
            Ok(decision) if decision.is_admitted() => Ended::Served,
            Ok(_) => Ended::Refused,
            Err(_) => Ended::Failed,
        };
        self.service.board().latency().end(begun, ended);
        match taken {
            Err(undecided) => self.undecided(&undecided),
            Ok(decision) => self.taken(owed, decision, reserve),
        }
    }

    fn taken(&self, owed: Charge, decision: Decision, reserve: bool) -> Outcome {
        let mut outcome = Outcome::new(&decision);
        if !decision.is_admitted() {
            return outcome;
        }
        let reserved = Reserved::new(self.service.store(), owed, decision);
        if !reserve {
            reserved.keep();
            return outcome;
        }
        outcome.decided.ticket = self.tickets.keep(reserved);
        match outcome.decided.ticket {
            None => Outcome::failed(503, "there are too many open tickets"),
            Some(_) => outcome,
        }
    }

    pub(super) async fn peek(&self, asked: Asked) -> Outcome {
        let owed = match self.owed(asked) {
            Ok(owed) => owed,
            Err(outcome) => return *outcome,
        };
        match self.service.peek(&owed, self.service.deadline()).await {
            Ok(decision) => Outcome::new(&decision),
            Err(undecided) => self.undecided(&undecided),
        }
    }

    pub(super) async fn reset(&self, asked: Asked) -> Result<(), Box<Outcome>> {
        let owed = self.owed(asked)?;
        let reset = self.service.store().reset(&owed);
        let reset = self.service.in_time(reset, self.service.deadline()).await;
        reset.map(|_| ()).map_err(|error| Outcome::failed(503, error.to_string()).into())
    }

    /// What a request owes, or why that is not known.
    fn owed(&self, asked: Asked) -> Result<Charge, Box<Outcome>> {
        let rules = self.service.rules();
        let rules = rules.ok_or_else(|| Outcome::failed(404, "the server has no file of rules"))?;
        let cost = asked.cost;
        let described = asked.described().map_err(|wrong| Outcome::failed(400, wrong))?;
        charge(rules, &described, cost.map(|cost| move |_| cost))
            .map_err(|missing| Outcome::failed(400, missing.to_string()).into())
    }

    /// A store that fails is not a limit that refuses.
    fn undecided(&self, undecided: &Undecided) -> Outcome {
        match self.service.on_store_error() {
            OnStoreError::Admit => {
                let free = sluicegate_core::adapter::Outcome::free();
                Outcome::new(&free.decision(&Charge::new()))
            }
            _ => Outcome::failed(503, undecided.to_string()),
        }
    }
}

/// A decision, and the header fields that belong to it.
pub(super) struct Outcome {
    pub(super) decided: Decided,
    fields: Vec<(&'static str, String)>,
}

impl Outcome {
    fn new(decision: &Decision) -> Self {
        let decided = Decided::new(decision);
        let mut all = vec![
            (fields::RATE_LIMIT_POLICY, fields::rate_limit_policy(decision)),
            (fields::RATE_LIMIT, fields::rate_limit(decision)),
        ];
        all.extend(decided.retry_after.map(|after| (fields::RETRY_AFTER, after.to_string())));
        Self { decided, fields: all }
    }

    pub(super) fn failed(status: u16, error: impl Into<String>) -> Self {
        Self { decided: Decided::failed(status, error), fields: Vec::new() }
    }

    pub(super) fn respond(self) -> Response {
        let status = StatusCode::from_u16(self.decided.status).unwrap_or(StatusCode::OK);
        let mut headers = no_store();
        for (name, value) in self.fields {
            if let Ok(value) = HeaderValue::try_from(value)
                && !value.is_empty()
            {
                headers.insert(name, value);
            }
        }
        (status, headers, Json(self.decided)).into_response()
    }
}

/// The answer to a request that makes no sense.
pub(in crate::api) fn bad(what: String) -> Response {
    Outcome::failed(400, what).respond()
}

/// An answer is about one moment.
pub(super) fn no_store() -> HeaderMap {
    HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))])
}
