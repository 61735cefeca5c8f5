use std::borrow::Cow;

use actix_web::http::header::{
    CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use tollgate_core::{Field, Headers, fields};

const RATE_LIMIT: HeaderName = HeaderName::from_static(fields::RATE_LIMIT);
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static(fields::RATE_LIMIT_POLICY);
const X_LIMIT: HeaderName = HeaderName::from_static(fields::X_LIMIT);
const X_REMAINING: HeaderName = HeaderName::from_static(fields::X_REMAINING);
const X_RESET: HeaderName = HeaderName::from_static(fields::X_RESET);
const X_WARNING: HeaderName = HeaderName::from_static(fields::X_WARNING);

/// Fields in actix-web's type.
pub(crate) struct ActixHeaders<'a>(pub(crate) &'a mut HeaderMap);

impl Headers for ActixHeaders<'_> {
    fn contains(&self, field: Field) -> bool {
        self.0.contains_key(name(field))
    }

    fn append(&mut self, field: Field, text: Cow<'static, str>) {
        if let Some(value) = value(text) {
            self.0.append(name(field), value);
        }
    }

    fn insert(&mut self, field: Field, text: Cow<'static, str>) {
        if let Some(value) = value(text) {
            self.0.insert(name(field), value);
        }
    }
}

fn name(field: Field) -> HeaderName {
    match field {
        Field::RateLimit => RATE_LIMIT,
        Field::RateLimitPolicy => RATE_LIMIT_POLICY,
        Field::XLimit => X_LIMIT,
        Field::XRemaining => X_REMAINING,
        Field::XReset => X_RESET,
        Field::XWarning => X_WARNING,
        Field::RetryAfter => RETRY_AFTER,
        Field::CacheControl => CACHE_CONTROL,
        Field::Location => LOCATION,
    }
}

/// Names of limits and locations are visible ASCII, so there always is one.
fn value(text: Cow<'static, str>) -> Option<HeaderValue> {
    match text {
        Cow::Borrowed(text) => Some(HeaderValue::from_static(text)),
        Cow::Owned(text) => HeaderValue::try_from(text).ok(),
    }
}
