use std::sync::Arc;

use sluicegate_core::adapter::{Field, Headers, Value, is_stored_for_others};

use super::shared::Shared;
use crate::announce::Announcement;

/// Writes the [level of admission](crate::announce) into responses, where a layer was told to.
#[derive(Debug, Clone)]
pub(super) struct Announcing(Option<Arc<Shared>>);

impl Announcing {
    pub(super) fn new(shared: &Arc<Shared>, is_on: bool) -> Self {
        Self(is_on.then(|| Arc::clone(shared)))
    }

    #[cfg(feature = "tower")]
    pub(super) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The value of the field for a response. `None` if nothing is announced, and for a response that caches may store
    /// for other clients, because a cache would serve an outdated level. `lines` shows each line of a header field of
    /// the response.
    pub(super) fn value(&self, lines: impl Fn(&str, &mut dyn FnMut(&[u8]))) -> Option<String> {
        let shared = self.0.as_ref()?;
        if is_stored_for_others(&Lines(lines)) {
            return None;
        }
        let now = shared.now();
        let admitted = shared.lock().scheduler.admitted_classes(now);
        Some(Announcement::new(admitted, &shared.classes).to_string())
    }
}

/// The header fields of any framework's response, to be read.
struct Lines<F>(F);

impl<F: Fn(&str, &mut dyn FnMut(&[u8]))> Headers for Lines<F> {
    fn contains(&self, field: Field) -> bool {
        let mut is_there = false;
        self.each_line(field, &mut |_| is_there = true);
        is_there
    }

    fn contains_any(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| self.contains(*field))
    }

    fn append(&mut self, _: Field, _: Value<'_>) {
        unreachable!("whether a response is stored is read only");
    }

    fn insert(&mut self, _: Field, _: Value<'_>) {
        unreachable!("whether a response is stored is read only");
    }

    fn each_line(&self, field: Field, see: &mut dyn FnMut(&[u8])) {
        (self.0)(field.name(), see);
    }
}
