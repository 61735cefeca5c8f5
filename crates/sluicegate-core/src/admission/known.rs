use crate::http::fields;
use crate::limit::Limit;

/// A limit that is known before any request is, and what the header fields always say of it.
#[derive(Debug, Clone)]
pub struct Known {
    limit: Limit,
    name: String,
    policy: String,
}

impl Known {
    pub(crate) fn new(limit: &Limit) -> Self {
        Self { limit: *limit, name: fields::quoted_name(limit), policy: fields::policy_of(limit) }
    }

    /// The limit.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Its item of the `RateLimit-Policy` field.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// What it is called in its item of the `RateLimit` field, in quotes.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
