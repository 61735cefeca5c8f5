use crate::http::fields;
use crate::http::lasting::lasting;
use crate::limit::{Limit, LimitInternals as _};

/// How many known limits a charge is compared with. Each is 248 bytes away from the next one, so more of them would take
/// longer than what is saved.
const MOST_COMPARED: usize = 64;

/// A limit that is known before any request, and the constant parts of its header fields.
#[derive(Debug, Clone)]
pub struct KnownLimit {
    limit: Limit,
    name: String,
    policy: String,
    lasting_policy: Option<&'static str>,
}

/// The place of a limit among those known, if it is one of the first: a file may have a hundred thousand of them. What
/// concerns others is written in full, as for limits that a request chooses.
#[inline]
pub(crate) fn position(known: &[KnownLimit], limit: &Limit) -> Option<u32> {
    let mut first = (0..).zip(known.iter().take(MOST_COMPARED));
    let is_same = |known: &KnownLimit| known.limit.id() == limit.id() && known.limit.is_same(limit);
    first.find_map(|(at, known)| is_same(known).then_some(at))
}

impl KnownLimit {
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
