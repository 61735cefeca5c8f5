use super::{Direct, Verdict};
use crate::floor::Floor;
use crate::keys::Key;

impl<K: Key> Direct<K> for Floor {
    #[inline]
    fn take(&self, key: &K, _: &mut String) -> Verdict {
        Verdict::of(self.admits(key))
    }
}
