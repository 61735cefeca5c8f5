use std::borrow::Cow;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::{Field, Headers};

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
    HeaderName::from_static(field.name())
}

/// Names of limits and locations are visible ASCII, so there always is one.
fn value(text: Cow<'static, str>) -> Option<HeaderValue> {
    match text {
        Cow::Borrowed(text) => Some(HeaderValue::from_static(text)),
        Cow::Owned(text) => HeaderValue::try_from(text).ok(),
    }
}
