use actix_web::dev::ServiceRequest;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{HttpMessage, HttpResponse};
use sluicegate_core::adapter::{Extensions, Field, Headers, ResponseHead, Value};

/// The extensions of a request.
pub(crate) struct ActixExtensions<'a>(pub(crate) &'a ServiceRequest);

impl Extensions for ActixExtensions<'_> {
    fn leave<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.0.extensions_mut().insert(value);
    }

    fn has<T: Send + Sync + 'static>(&self) -> bool {
        self.0.extensions().contains::<T>()
    }

    fn find<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.0.extensions().get::<T>().cloned()
    }
}

/// The head of a response.
pub(crate) struct ActixHead<'a, B> {
    response: &'a mut HttpResponse<B>,
    /// The item of each known limit in the `RateLimit-Policy` field.
    policies: &'a [HeaderValue],
}

impl<'a, B> ActixHead<'a, B> {
    pub(crate) fn of(response: &'a mut HttpResponse<B>, policies: &'a [HeaderValue]) -> Self {
        Self { response, policies }
    }
}

impl<B> Extensions for ActixHead<'_, B> {
    fn leave<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.response.extensions_mut().insert(value);
    }

    fn has<T: Send + Sync + 'static>(&self) -> bool {
        self.response.extensions().contains::<T>()
    }

    fn find<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.response.extensions().get::<T>().cloned()
    }
}

impl<B> ResponseHead for ActixHead<'_, B> {
    fn append_policy(&mut self, at: usize) {
        let policy = self.policies[at].clone();
        self.response.headers_mut().append(name(Field::RateLimitPolicy), policy);
    }
}

impl<B> Headers for ActixHead<'_, B> {
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
        for line in self.response.headers().get_all(name(field)) {
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
