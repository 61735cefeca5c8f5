use std::fmt;
use std::sync::Arc;

use crate::admission::refusal::Refusal;
use crate::http::headers::Headers;
use crate::limit::{Decision, Limit};

/// Header fields and errors in the form of an API, so that its clients understand a service without a change.
///
/// The fields are written beside those of the draft. `sluicegate-llm` has the dialects of language models.
pub trait Dialect: fmt::Debug + Send + Sync + 'static {
    /// Checks the policies that it tells of when a layer is made. `limits` are those of the rule; none if it makes them
    /// for each request.
    ///
    /// # Panics
    ///
    /// If it tells of no policy, or of one that none of the limits has.
    fn check(&self, limits: &[Limit]);

    /// Writes the fields of a decision. `now` is in microseconds since the Unix epoch. `headers` contain a
    /// [named](crate::adapter::Field::Named) field if a layer further in has written it, not if the service has.
    fn write(&self, decision: &Decision, now: u64, headers: &mut dyn Headers);

    /// Writes how long a refused request has to wait, more exactly than `Retry-After` does.
    fn write_retry(&self, decision: &Decision, headers: &mut dyn Headers);

    /// The body of a refusal, in JSON.
    fn error_body(&self, refusal: &Refusal) -> String;
}

/// Any [`Dialect`], or none. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct AnyDialect(Option<Arc<dyn Dialect>>);

impl AnyDialect {
    /// The dialect.
    pub fn get(&self) -> Option<&Arc<dyn Dialect>> {
        self.0.as_ref()
    }
}

impl<D: Dialect> From<D> for AnyDialect {
    fn from(dialect: D) -> Self {
        Self(Some(Arc::new(dialect)))
    }
}

impl<D: Dialect> From<Option<D>> for AnyDialect {
    fn from(dialect: Option<D>) -> Self {
        dialect.map(Self::from).unwrap_or_default()
    }
}
