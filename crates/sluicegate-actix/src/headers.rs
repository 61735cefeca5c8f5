use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use sluicegate_core::adapter::{Field, Headers, Value};

/// Fields in actix-web's type.
pub(crate) struct ActixHeaders<'a>(pub(crate) &'a mut HeaderMap);

impl Headers for ActixHeaders<'_> {
    fn contains(&self, field: Field) -> bool {
        self.0.contains_key(name(field))
    }

    fn append(&mut self, field: Field, value: Value<'_>) {
        if let Some(value) = written(value) {
            self.0.append(name(field), value);
        }
    }

    fn insert(&mut self, field: Field, value: Value<'_>) {
        if let Some(value) = written(value) {
            self.0.insert(name(field), value);
        }
    }

    fn each_line(&self, field: Field, see: &mut dyn FnMut(&[u8])) {
        for line in self.0.get_all(name(field)) {
            see(line.as_bytes());
        }
    }
}

/// The names, looked through when this is compiled.
pub(crate) fn name(field: Field) -> HeaderName {
    macro_rules! names {
        ($($field:ident)*) => {
            match field {
                $(Field::$field => {
                    const NAME: HeaderName = HeaderName::from_static(Field::$field.name());
                    NAME
                })*
            }
        };
    }
    names! {
        RateLimit RateLimitPolicy XLimit XRemaining XReset XWarning RetryAfter CacheControl Expires
        Location
    }
}

/// Names of limits and locations are visible ASCII, so there always is one.
fn written(value: Value<'_>) -> Option<HeaderValue> {
    match value {
        Value::Static(text) => Some(HeaderValue::from_static(text)),
        Value::Text(text) => HeaderValue::from_str(text).ok(),
        Value::Number(number) => Some(number.into()),
    }
}
