//! The header fields of a refusal.

use crate::admission::refusal::Refusal;
use crate::http::headers::{Field, Fields, Headers, Value};

impl Fields {
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
            Refusal::TooMany(decision) | Refusal::NeverFits(decision, _) => {
                self.write(decision, headers);
            }
            Refusal::Elsewhere(_, redirect) => {
                headers.insert(Field::Location, Value::Text(&redirect.location));
            }
            Refusal::Missing(_) | Refusal::Unavailable(_) => {}
        }
    }
}
