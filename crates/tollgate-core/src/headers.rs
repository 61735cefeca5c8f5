//! Writing the header fields of a response, whatever type the framework keeps them in.

use crate::fields;
use crate::limit::Decision;
use crate::refusal::Refusal;

/// The header fields of a response: what an adapter lets be written of its framework's own type.
pub trait Headers {
    /// Whether a line of `field` is there.
    fn contains(&self, field: Field) -> bool;

    /// Adds a line of `field`; those that are there stay.
    fn append(&mut self, field: Field, value: Value<'_>);

    /// Makes `value` the only line of `field`.
    fn insert(&mut self, field: Field, value: Value<'_>);
}

/// What stands in a header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Always the same.
    Static(&'static str),
    /// Visible ASCII and spaces.
    Text(&'a str),
    /// A number.
    Number(u64),
}

/// A header field that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// [`fields::RATE_LIMIT`]
    RateLimit,
    /// [`fields::RATE_LIMIT_POLICY`]
    RateLimitPolicy,
    /// [`fields::X_LIMIT`]
    XLimit,
    /// [`fields::X_REMAINING`]
    XRemaining,
    /// [`fields::X_RESET`]
    XReset,
    /// [`fields::X_WARNING`]
    XWarning,
    /// [`fields::RETRY_AFTER`]
    RetryAfter,
    /// `Cache-Control`
    CacheControl,
    /// `Location`
    Location,
}

impl Field {
    /// The name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RateLimit => fields::RATE_LIMIT,
            Self::RateLimitPolicy => fields::RATE_LIMIT_POLICY,
            Self::XLimit => fields::X_LIMIT,
            Self::XRemaining => fields::X_REMAINING,
            Self::XReset => fields::X_RESET,
            Self::XWarning => fields::X_WARNING,
            Self::RetryAfter => fields::RETRY_AFTER,
            Self::CacheControl => "cache-control",
            Self::Location => "location",
        }
    }
}

/// Which header fields tell clients how they stand.
///
/// ```
/// use tollgate_core::Fields;
///
/// let fields = Fields::DRAFT.and(Fields::X_RATE_LIMIT);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    draft: bool,
    x_rate_limit: bool,
}

impl Fields {
    /// None. A refusal has its `Retry-After` all the same.
    pub const NONE: Self = Self { draft: false, x_rate_limit: false };

    /// `RateLimit` and `RateLimit-Policy`, after draft-ietf-httpapi-ratelimit-headers-11. The default.
    pub const DRAFT: Self = Self { draft: true, ..Self::NONE };

    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in seconds from now, and `-Warning`
    /// beyond a soft limit.
    pub const X_RATE_LIMIT: Self = Self { x_rate_limit: true, ..Self::NONE };

    /// Both these and `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            draft: self.draft || other.draft,
            x_rate_limit: self.x_rate_limit || other.x_rate_limit,
        }
    }

    /// Writes the fields of a decision.
    pub fn write(self, decision: &Decision, headers: &mut impl Headers) {
        if decision.told().next().is_none() {
            return;
        }
        if self.draft {
            // Both are lists: with layers on top of one another, each adds its own items.
            let (policy, line) = (fields::policy_line(decision), fields::rate_limit_line(decision));
            headers.append(Field::RateLimitPolicy, Value::Text(policy.as_str()));
            headers.append(Field::RateLimit, Value::Text(line.as_str()));
        }
        // These speak of one limit: with layers on top of one another, of the innermost one's.
        let x_rate_limit = self.x_rate_limit && !headers.contains(Field::XLimit);
        if let (true, Some(standing)) = (x_rate_limit, fields::tightest(decision)) {
            headers.insert(Field::XLimit, Value::Number(standing.limit.capacity()));
            headers.insert(Field::XRemaining, Value::Number(standing.remaining));
            headers.insert(Field::XReset, Value::Number(fields::x_reset(standing)));
            if decision.is_soft() {
                headers.insert(Field::XWarning, Value::Static("soft limit exceeded"));
            }
        }
    }

    /// Whether these are the draft's fields and no others.
    #[inline]
    pub fn is_draft(self) -> bool {
        self == Self::DRAFT
    }

    /// Writes the fields of a response that was served: nothing where somebody else has said when to
    /// come back, since no window announced may end after that.
    pub fn write_served(self, decision: &Decision, headers: &mut impl Headers) {
        if self != Self::NONE && !headers.contains(Field::RetryAfter) {
            self.write(decision, headers);
        }
    }

    /// Writes what a refusal says beside what the operator answers.
    pub fn write_refusal(self, refusal: &Refusal, headers: &mut impl Headers) {
        if let (Some(seconds), false) = (refusal.retry_after(), headers.contains(Field::RetryAfter))
        {
            headers.insert(Field::RetryAfter, Value::Number(seconds));
        }
        if !headers.contains(Field::CacheControl) {
            // RFC 6585, 4: a 429 is not stored by a cache.
            headers.insert(Field::CacheControl, Value::Static("no-store"));
        }
        match refusal {
            Refusal::TooMany(decision) => self.write(decision, headers),
            Refusal::Elsewhere(_, redirect) => {
                headers.insert(Field::Location, Value::Text(&redirect.location));
            }
            Refusal::Missing(_) | Refusal::Unavailable(_) => {}
        }
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self::DRAFT
    }
}
