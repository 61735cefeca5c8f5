use crate::key::{Key, KeyBuf, Missing, View};

/// A key that clients may leave out. A request without it is not limited by the rule.
///
/// It is still an error if the server does not provide the value, or if the value can be read in more than one way.
#[derive(Debug, Clone, Copy)]
pub struct Optional<K>(pub K);

impl<V: View, K: Key<V>> Key<V> for Optional<K> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        self.0.write(view, key).map_err(|missing| {
            if missing.is_client() && !missing.is_ambiguous() { Missing::exempt() } else { missing }
        })
    }
}
