//! Writing the header fields of a response, for any framework's header map.

use crate::http::fields;
use crate::limit::Decision;

/// The header fields of a response. An adapter implements this for its framework's own type.
pub trait Headers {
    /// Whether a line of any of the `fields` is there. Most responses have few fields: looking at each is quicker than
    /// looking up several names.
    fn contains_any(&self, fields: &[Field]) -> bool;

    /// Whether a line of `field` is there.
    #[inline]
    fn contains(&self, field: Field) -> bool {
        self.contains_any(&[field])
    }

    /// Adds a line of `field`; those that are there stay.
    fn append(&mut self, field: Field, value: Value<'_>);

    /// Makes `value` the only line of `field`.
    fn insert(&mut self, field: Field, value: Value<'_>);

    /// Shows each line of `field`.
    fn each_line(&self, field: Field, see: &mut dyn FnMut(&[u8]));
}

/// Whether the response may be stored by caches that serve other clients too, so that the fields of one client must not
/// be in it.
///
/// `Cache-Control` says so by `public`, `s-maxage` or `max-age` without `private`, `no-store` or `no-cache`. If it says
/// neither an age nor any of these, `Expires` decides (RFC 9111, 3 and 4.2.1). A `private` or `no-cache` that names
/// fields does not cover the others. A response that says nothing is not taken for cacheable.
///
/// Beside one of these two fields, `CDN-Cache-Control` (RFC 9213) and `Surrogate-Control` are read as well: they
/// speak to the shared cache of a CDN alone, and may allow it what `Cache-Control` forbids all others.
pub fn is_stored_for_others(headers: &impl Headers) -> bool {
    let says = headers.contains(Field::CacheControl);
    if !says && !headers.contains(Field::Expires) {
        return false;
    }
    let usual = Caching::of(headers, Field::CacheControl);
    // What is no date, such as `0`, has expired.
    let is_date = |line: &[u8]| line.first().is_some_and(u8::is_ascii_alphabetic);
    let mut expires = false;
    if !usual.forbidden && !usual.has_age {
        headers.each_line(Field::Expires, &mut |line| expires |= is_date(line));
    }
    let for_a_cdn = |field| Caching::of(headers, field).is_allowed();
    usual.is_allowed()
        || expires
        || for_a_cdn(Field::CdnCacheControl)
        || for_a_cdn(Field::SurrogateControl)
}

/// What the lines of `Cache-Control`, or of a similar field, tell shared caches.
#[derive(Debug, Default)]
struct Caching {
    allowed: bool,
    forbidden: bool,
    /// Whether a time is given, even 0.
    has_age: bool,
}

impl Caching {
    fn of(headers: &impl Headers, field: Field) -> Self {
        let mut caching = Self::default();
        headers.each_line(field, &mut |line| {
            line.split(|byte| *byte == b',').for_each(|directive| caching.read(directive));
        });
        caching
    }

    fn read(&mut self, directive: &[u8]) {
        let mut parts = directive.trim_ascii().splitn(2, |byte| *byte == b'=');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next());
        let is = |other: &str| name.trim_ascii_end().eq_ignore_ascii_case(other.as_bytes());
        let is_age = is("max-age") || is("s-maxage");
        let lasts =
            value.is_some_and(|value| value.iter().any(|byte| (b'1'..=b'9').contains(byte)));
        self.has_age |= is_age;
        self.allowed |= is("public") || is_age && lasts;
        self.forbidden |=
            value.is_none() && ["private", "no-store", "no-cache"].into_iter().any(is);
    }

    fn is_allowed(&self) -> bool {
        self.allowed && !self.forbidden
    }
}

/// Whether nothing about this client may be written: the response says when to come back, or it is [stored for
/// others](is_stored_for_others).
#[inline]
pub(crate) fn is_told_to_wait_or_stored(headers: &impl Headers) -> bool {
    headers.contains_any(&[Field::RetryAfter, Field::CacheControl, Field::Expires])
        && (headers.contains(Field::RetryAfter) || is_stored_for_others(headers))
}

/// The value of a header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Always the same.
    Static(&'static str),
    /// Visible ASCII and spaces.
    Text(&'a [u8]),
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
    /// `Expires`
    Expires,
    /// `CDN-Cache-Control`
    CdnCacheControl,
    /// `Surrogate-Control`
    SurrogateControl,
    /// `Location`
    Location,
    /// Another field, by its name in lower case.
    Named(&'static str),
}

impl Field {
    /// The name, in lower case.
    #[inline]
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
            Self::Expires => "expires",
            Self::CdnCacheControl => "cdn-cache-control",
            Self::SurrogateControl => "surrogate-control",
            Self::Location => "location",
            Self::Named(name) => name,
        }
    }
}

/// Which header fields tell clients what they have left.
///
/// ```
/// use sluicegate::Fields;
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

    /// Writes the fields of a decision. Writes none if the response [is stored for others](is_stored_for_others):
    /// they would see what this client has left.
    pub fn write(self, decision: &Decision, headers: &mut impl Headers) {
        if !is_stored_for_others(headers) {
            self.write_always(decision, headers);
        }
    }

    /// Writes the fields of a decision to a response that is known not to be stored for others.
    pub(crate) fn write_always(self, decision: &Decision, headers: &mut impl Headers) {
        if decision.told().next().is_none() {
            return;
        }
        if self.draft {
            // Both are lists: with layers on top of one another, each adds its own items.
            let (policy, line) = (fields::policy_line(decision), fields::rate_limit_line(decision));
            headers.append(Field::RateLimitPolicy, Value::Text(policy.as_bytes()));
            headers.append(Field::RateLimit, Value::Text(line.as_bytes()));
        }
        // These describe one limit: with several layers, that of the innermost layer.
        let x_rate_limit = self.x_rate_limit && !headers.contains(Field::XLimit);
        if let (true, Some(status)) = (x_rate_limit, fields::tightest(decision)) {
            headers.insert(Field::XLimit, Value::Number(status.limit.capacity()));
            headers.insert(Field::XRemaining, Value::Number(fields::left(decision, status).0));
            headers.insert(Field::XReset, Value::Number(fields::x_reset(decision, status)));
            if decision.is_soft() {
                headers.insert(Field::XWarning, Value::Static("soft limit exceeded"));
            }
        }
    }

    /// Whether these are the draft's fields and no others.
    #[inline]
    pub(crate) fn is_draft(self) -> bool {
        self == Self::DRAFT
    }

    /// Writes the fields of a response that was served. Writes none if the response already says when to come back,
    /// because no announced window may end after that.
    pub fn write_served(self, decision: &Decision, headers: &mut impl Headers) {
        if self != Self::NONE && !headers.contains(Field::RetryAfter) {
            self.write(decision, headers);
        }
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self::DRAFT
    }
}
