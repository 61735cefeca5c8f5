use http::header::{HeaderMap, HeaderName, HeaderValue};
use sluicegate_core::adapter::{Field, Headers, Value};

/// Fields in the type of the `http` crate.
pub(crate) struct HttpHeaders<'a>(pub(crate) &'a mut HeaderMap);

impl Headers for HttpHeaders<'_> {
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
        for line in self.0.get_all(name(field)).into_iter() {
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{CACHE_CONTROL, EXPIRES};
    use sluicegate_core::adapter::is_stored_for_others;

    use super::*;

    fn is_stored(lines: &[(http::HeaderName, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, HeaderValue::from_static(value));
        }
        is_stored_for_others(&HttpHeaders(&mut headers))
    }

    #[test]
    fn what_shared_caches_store_is_known_by_cache_control_and_expires() {
        for value in [
            "public",
            "Public, Max-Age=60",
            "max-age=60",
            "max-age=\"60\"",
            "s-maxage=1, max-age=0",
            "must-revalidate, max-age=600",
            "private=\"set-cookie\", max-age=60",
            "no-cache=\"set-cookie, x\",s-maxage=9",
        ] {
            assert!(is_stored(&[(CACHE_CONTROL, value)]), "{value}");
        }
        for value in
            ["", "private", "private, max-age=60", "no-store", "NO-CACHE, max-age=60", "max-age=0"]
        {
            assert!(!is_stored(&[(CACHE_CONTROL, value)]), "{value}");
        }
        assert!(is_stored(&[(CACHE_CONTROL, "must-revalidate"), (CACHE_CONTROL, "max-age=5")]));
        assert!(!is_stored(&[(CACHE_CONTROL, "max-age=5"), (CACHE_CONTROL, "private")]));
        assert!(is_stored(&[(EXPIRES, "Sun, 06 Nov 2095 08:49:37 GMT")]));
        assert!(!is_stored(&[(EXPIRES, "0")]));
        assert!(!is_stored(&[]));
    }
}
