use http::header::{HeaderName, HeaderValue};
use http::{Extensions, Response};
use sluicegate_core::adapter::{self, Field, Headers, ResponseHead, Value};

/// Extensions of the `http` crate.
#[derive(Debug)]
pub struct HttpExtensions<'a>(pub &'a mut Extensions);

impl adapter::Extensions for HttpExtensions<'_> {
    fn leave<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(value);
    }

    fn has<T: Send + Sync + 'static>(&self) -> bool {
        self.0.get::<T>().is_some()
    }

    fn find<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.0.get::<T>().cloned()
    }
}

/// The head of a response of the `http` crate.
#[derive(Debug)]
pub struct HttpHead<'a, B> {
    response: &'a mut Response<B>,
    /// The item of each known limit in the `RateLimit-Policy` field.
    policies: &'a [HeaderValue],
}

impl<'a, B> HttpHead<'a, B> {
    /// The head of `response`. `policies` are the items of all known limits in the `RateLimit-Policy` field.
    pub fn of(response: &'a mut Response<B>, policies: &'a [HeaderValue]) -> Self {
        Self { response, policies }
    }
}

impl<B> adapter::Extensions for HttpHead<'_, B> {
    fn leave<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.response.extensions_mut().insert(value);
    }

    fn has<T: Send + Sync + 'static>(&self) -> bool {
        self.response.extensions().get::<T>().is_some()
    }

    fn find<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.response.extensions().get::<T>().cloned()
    }
}

impl<B> ResponseHead for HttpHead<'_, B> {
    fn append_policy(&mut self, at: usize) {
        let policy = self.policies[at].clone();
        self.response.headers_mut().append(name(Field::RateLimitPolicy), policy);
    }
}

impl<B> Headers for HttpHead<'_, B> {
    #[inline]
    fn contains_any(&self, fields: &[Field]) -> bool {
        let mut present = self.response.headers().keys().map(HeaderName::as_str);
        present.any(|present| fields.iter().any(|field| present == field.name()))
    }

    fn append(&mut self, field: Field, value: Value<'_>) {
        if let Some(value) = written(value) {
            self.response.headers_mut().append(name(field), value);
        }
    }

    fn insert(&mut self, field: Field, value: Value<'_>) {
        if let Some(value) = written(value) {
            self.response.headers_mut().insert(name(field), value);
        }
    }

    fn each_line(&self, field: Field, see: &mut dyn FnMut(&[u8])) {
        for line in self.response.headers().get_all(name(field)).into_iter() {
            see(line.as_bytes());
        }
    }
}

/// The names, looked through when this is compiled.
pub(crate) fn name(field: Field) -> HeaderName {
    macro_rules! names {
        ($($field:ident)*) => {
            match field {
                Field::Named(name) => HeaderName::from_static(name),
                $(Field::$field => {
                    const NAME: HeaderName = HeaderName::from_static(Field::$field.name());
                    NAME
                })*
            }
        };
    }
    names! {
        RateLimit RateLimitPolicy XLimit XRemaining XReset XWarning RetryAfter CacheControl Expires
        CdnCacheControl SurrogateControl Location
    }
}

/// Names of limits and locations are visible ASCII, so there always is one.
fn written(value: Value<'_>) -> Option<HeaderValue> {
    match value {
        Value::Static(text) => Some(HeaderValue::from_static(text)),
        Value::Text(text) => HeaderValue::from_bytes(text).ok(),
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
        let mut response = Response::new(());
        for (name, value) in lines {
            response.headers_mut().append(name, HeaderValue::from_static(value));
        }
        is_stored_for_others(&HttpHead::of(&mut response, &[]))
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

    #[test]
    fn expires_decides_where_cache_control_names_no_age() {
        let date = (EXPIRES, "Sun, 06 Nov 2095 08:49:37 GMT");
        for value in ["must-revalidate", "no-transform", "stale-if-error=60"] {
            assert!(is_stored(&[(CACHE_CONTROL, value), date.clone()]), "{value}");
            assert!(!is_stored(&[(CACHE_CONTROL, value), (EXPIRES, "-1")]), "{value}");
        }
        for value in ["private", "no-store", "no-cache", "max-age=0", "s-maxage=0"] {
            assert!(!is_stored(&[(CACHE_CONTROL, value), date.clone()]), "{value}");
        }
    }

    #[test]
    fn a_cdn_is_told_apart_what_it_stores() {
        let (cdn, surrogate) = (
            http::HeaderName::from_static("cdn-cache-control"),
            http::HeaderName::from_static("surrogate-control"),
        );
        for field in [cdn, surrogate] {
            for usual in ["no-store", "private", "max-age=0", "no-cache"] {
                assert!(is_stored(&[(CACHE_CONTROL, usual), (field.clone(), "Max-Age=600")]));
                assert!(!is_stored(&[(CACHE_CONTROL, usual), (field.clone(), "no-store")]));
            }
            assert!(is_stored(&[(CACHE_CONTROL, "public"), (field.clone(), "max-age=9")]));
        }
    }
}
