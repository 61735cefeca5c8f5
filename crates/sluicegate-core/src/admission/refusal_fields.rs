//! The header fields of a refusal.

use crate::admission::refusal::Refusal;
use crate::http::headers::{Field, Fields, Headers, Value, is_stored_for_others};
use crate::limit::Decision;

impl Fields {
    /// Writes what a refusal says beside what the operator answers. `write` writes these fields about a decision.
    pub(crate) fn write_refusal<H: Headers>(
        refusal: &Refusal,
        headers: &mut H,
        write: impl FnOnce(&Decision, &mut H),
    ) {
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
                    write(decision, headers);
                }
            }
            Refusal::Elsewhere(_, redirect) => {
                headers.insert(Field::Location, Value::Text(redirect.location.as_bytes()));
            }
            Refusal::Incomplete(_) | Refusal::Misconfigured(_) | Refusal::Unavailable(_) => {}
        }
    }
}
