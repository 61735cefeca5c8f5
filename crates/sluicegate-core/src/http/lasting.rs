//! Texts that live as long as the process.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The largest number of texts, however many layers and reloaded files there are.
const MOST: usize = 256;

/// The longest text.
const LONGEST: usize = 256;

static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Keeps `text` for the life of the process; `None` if there is no room for it.
///
/// A header value of such a text is cloned and dropped without counting references, which takes two atomic operations
/// for each response otherwise, a tenth of what writing the fields takes. Texts are never dropped, so they are bounded
/// in number and length: 64 KiB in all.
pub(crate) fn lasting(text: &str) -> Option<&'static str> {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = texts.get(text) {
        return Some(text);
    }
    if texts.len() == MOST || text.len() > LONGEST {
        return None;
    }
    let text: &'static str = Box::leak(text.into());
    texts.insert(text);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_last_are_bounded_in_number_and_length() {
        assert_eq!(lasting(&"x".repeat(LONGEST + 1)), None);
        let first = lasting("first").expect("room");
        let kept = (0..2 * MOST).filter(|number| lasting(&format!("text {number}")).is_some());
        assert!(kept.count() < MOST);
        assert_eq!(lasting("one too many"), None);
        assert!(std::ptr::eq(first, lasting("first").expect("it is kept already")));
    }
}
