//! The header fields of a refusal.

use crate::admission::refusal::Refusal;
use crate::http::headers::{Field, Fields, Headers, Value, is_stored_for_others};

impl Fields {
    /// Writes what a refusal says beside what the operator answers.
    pub fn write_refusal(self, refusal: &Refusal, headers: &mut impl Headers) {
        if let (Some(seconds), false) = (refusal.retry_after(), headers.contains(Field::RetryAfter))
        {
            headers.insert(Field::RetryAfter, Value::Number(seconds));
        }
        let is_private = !headers.contains_any(&[
            Field::CacheControl,
            Field::CdnCacheControl,
            Field::SurrogateControl,
        ]);
        if is_private || !headers.contains(Field::CacheControl) {
            // RFC 6585, 4: a 429 is not stored by a cache.
            headers.insert(Field::CacheControl, Value::Static("no-store"));
        }
        match refusal {
            Refusal::TooMany(decision) | Refusal::NeverFits(decision, _) => {
                if is_private || !is_stored_for_others(headers) {
                    self.write_always(decision, headers);
                }
            }
            Refusal::Elsewhere(_, redirect) => {
                headers.insert(Field::Location, Value::Text(redirect.location.as_bytes()));
            }
            Refusal::Incomplete(_) | Refusal::Misconfigured(_) | Refusal::Unavailable(_) => {}
        }
    }
}
