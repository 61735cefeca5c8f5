use crate::http::fields;
use crate::http::lasting::lasting;
use crate::limit::Limit;

/// A limit that is known before any request, and the constant parts of its header fields.
#[derive(Debug, Clone)]
pub struct Known {
    limit: Limit,
    name: String,
    policy: String,
    lasting_policy: Option<&'static str>,
}

impl Known {
    pub(crate) fn new(limit: &Limit) -> Self {
        let policy = fields::policy_of(limit);
        let lasting_policy = lasting(&policy);
        Self { limit: *limit, name: fields::quoted_name(limit), policy, lasting_policy }
    }

    /// The limit.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Its item of the `RateLimit-Policy` field.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// The same as [`policy`](Self::policy). `None` if this process knows more limits than are kept for its whole
    /// life.
    pub fn lasting_policy(&self) -> Option<&'static str> {
        self.lasting_policy
    }

    /// Its name in the item of the `RateLimit` field, in quotes.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
