//! What the admission leaves in a request and in its response.

use crate::admission::enforcer::{AsEnforcer, Enforcer, LeaveDecision};
use crate::admission::known_limit::position;
use crate::admission::lazy_decision::{Extensions, LazyDecision};
use crate::admission::paid::Paid;
use crate::admission::refusal::Refusal;
use crate::admission::unserved::Charged;
use crate::http::dialect::Dialect;
use crate::http::fields;
use crate::http::headers::{Field, Fields, Headers, Value, is_told_to_wait_or_stored};
use crate::http::line::{Line, Text};
use crate::limit::Decision;

/// Left in the extensions of requests that exceed a limit under
/// [`Rejection::degrade`](crate::Rejection::degrade): the handler should serve less.
#[derive(Debug, Clone, Copy)]
pub struct Degraded;

/// Left in the extensions of a response with which a limit refused the request, so that outer layers give their own
/// charges back. The default is the mark of a limit that is exceeded.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Refused {
    /// Whether the limit could not decide, because its store has failed.
    pub is_undecided: bool,
}

/// The head of a response: its header fields and its extensions.
pub trait ResponseHead: Headers + Extensions {
    /// Adds the item of the [known](Enforcer::known) limit at this index to `RateLimit-Policy`.
    fn append_policy(&mut self, at: usize);
}

impl<S> Enforcer<S> {
    /// Tells the handler of the decision.
    #[inline]
    pub fn mark<E: AsEnforcer>(&self, paid: &Paid<E>, request: &mut impl Extensions) {
        if self.extensions != LeaveDecision::Nowhere {
            paid.leave_decision(request);
            // A handler that asks is told that nothing limits this request, or what a layer further out has decided.
            if !paid.is_decided() && !request.has::<LazyDecision>() {
                request.leave(LazyDecision::NOTHING);
            }
        } else if paid.is_decided() {
            request.leave(Charged);
        }
        if paid.is_degraded() {
            request.leave(Degraded);
        }
    }

    /// Completes the response of a refusal: writes its fields, and tells layers further out.
    pub fn write_refusal(&self, refusal: Refusal, response: &mut impl ResponseHead) {
        Fields::write_refusal(&refusal, response, |decision, response| {
            if !(self.fields.is_draft() && self.write_known_refusal(decision, response)) {
                self.fields.write_always(decision, response);
            }
            if let Some(dialect) = self.dialect.get() {
                let mut response = OfDialect::new(response);
                dialect.write(decision, self.clock.now(), &mut response);
                dialect.write_retry(decision, &mut response);
                response.leave();
            }
        });
        if refusal.gives_back() {
            let is_undecided = matches!(refusal, Refusal::Unavailable(_));
            response.leave(Refused { is_undecided });
        }
        if self.extensions == LeaveDecision::Nowhere {
            return;
        }
        if let Some(decision) = refusal.into_decision() {
            response.leave(LazyDecision::from(decision));
        }
    }

    /// Writes the draft's fields about one known limit that refuses: half of them is written already. Returns `false`
    /// where it is not one known limit.
    fn write_known_refusal(&self, decision: &Decision, response: &mut impl ResponseHead) -> bool {
        let Some(status) = fields::only_announced(decision) else { return false };
        let Some(at) = position(&self.known, &status.limit) else { return false };
        let at = at as usize;
        let mut line = Line::new();
        line.text(self.known[at].name());
        fields::left_item(&mut line, decision, status);
        response.append_policy(at);
        response.append(Field::RateLimit, Value::Text(line.as_bytes()));
        true
    }

    /// Tells the client of a served request how much is left, and layers further out of the decision.
    #[inline]
    pub fn write_served<E: AsEnforcer>(&self, paid: &Paid<E>, response: &mut impl ResponseHead) {
        let Self { fields, extensions, .. } = *self;
        if let Some(dialect) = self.dialect.get() {
            self.write_dialect(&**dialect, paid, response);
        }
        let leaves = match extensions {
            LeaveDecision::Nowhere => false,
            LeaveDecision::InRequests => paid.exceeds(),
            LeaveDecision::Everywhere => true,
        };
        if fields == Fields::NONE && !leaves {
            return;
        }
        let is_written = fields == Fields::NONE || fields.is_draft() && write_known(paid, response);
        if !is_written && paid.is_decided() {
            fields.write_served(&paid.decision(), response);
        }
        if leaves {
            paid.leave_decision(response);
        }
    }
}

impl<S> Enforcer<S> {
    /// Writes the fields of the dialect where others may be written.
    #[cold]
    fn write_dialect<E: AsEnforcer>(
        &self,
        dialect: &dyn Dialect,
        paid: &Paid<E>,
        response: &mut impl ResponseHead,
    ) {
        if is_told_to_wait_or_stored(response) {
            return;
        }
        if paid.is_decided() {
            let mut response = OfDialect::new(response);
            dialect.write(&paid.decision(), self.clock.now(), &mut response);
            response.leave();
        }
    }
}

/// The names of the fields of a dialect that layers have written, in the extensions of the response.
#[derive(Debug, Clone, Default)]
struct Written(Vec<&'static str>);

/// A response for a dialect, which finds only those of its fields there that a layer has written. The service may be a
/// proxy in front of such an API: what that says is about the account of the operator, not of the client.
struct OfDialect<'a, R> {
    response: &'a mut R,
    written: Written,
}

impl<'a, R: ResponseHead> OfDialect<'a, R> {
    fn new(response: &'a mut R) -> Self {
        let written = response.find().unwrap_or_default();
        Self { response, written }
    }

    /// Tells layers further out what is written.
    fn leave(self) {
        self.response.leave(self.written);
    }
}

impl<R: ResponseHead> Headers for OfDialect<'_, R> {
    fn contains_any(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| match field {
            Field::Named(name) => self.written.0.contains(name),
            field => self.response.contains(*field),
        })
    }

    fn append(&mut self, field: Field, value: Value<'_>) {
        self.written.0.push(field.name());
        self.response.append(field, value);
    }

    fn insert(&mut self, field: Field, value: Value<'_>) {
        self.written.0.push(field.name());
        self.response.insert(field, value);
    }

    fn each_line(&self, field: Field, see: &mut dyn FnMut(&[u8])) {
        self.response.each_line(field, see);
    }
}

/// Writes the draft's fields about one known limit: half of them is written already.
fn write_known<E: AsEnforcer>(paid: &Paid<E>, response: &mut impl ResponseHead) -> bool {
    // Where the service has said when to come back, no window announced may end after that. Where a cache serves
    // the same response to others, they must not learn what is left for this client.
    let is_kept_back = is_told_to_wait_or_stored(response);
    paid.tell(|at, line| {
        if !is_kept_back {
            response.append_policy(at);
            response.append(Field::RateLimit, Value::Text(line));
        }
    })
}
