/// Places that a key can be in.
const WAYS: usize = 4;

/// Values by key, in memory that never grows.
///
/// If there is no room for a new key, it replaces the least recently used of the keys that were used only once, or of
/// all if there are none such. A flood of keys that are used once does not displace keys in use.
#[derive(Debug)]
pub(crate) struct Table<T> {
    sets: Box<[[Row<T>; WAYS]]>,
    /// Counts uses, to find the row that was used least recently.
    uses: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Row<T> {
    key: u64,
    /// Zero where there is no key.
    used: u64,
    is_used_again: bool,
    value: T,
}

impl<T: Copy + Default> Table<T> {
    /// Room for about `keys` keys.
    pub(crate) fn new(keys: usize) -> Self {
        let sets = keys.div_ceil(WAYS).clamp(1, 1 << 20).next_power_of_two();
        Self { sets: vec![[Row::default(); WAYS]; sets].into(), uses: 0 }
    }

    pub(crate) fn value(&self, key: u64) -> Option<&T> {
        let row = self.sets[self.set(key)].iter().find(|row| row.used > 0 && row.key == key);
        row.map(|row| &row.value)
    }

    /// The value of this key, if it is known. This is not a use of the key.
    pub(crate) fn known_mut(&mut self, key: u64) -> Option<&mut T> {
        let set = self.set(key);
        let row = self.sets[set].iter_mut().find(|row| row.used > 0 && row.key == key);
        row.map(|row| &mut row.value)
    }

    /// The value of this key, or a new one if the key is unknown.
    pub(crate) fn value_mut(&mut self, key: u64) -> &mut T {
        self.uses += 1;
        let (set, used) = (self.set(key), self.uses);
        let rows = &mut self.sets[set];
        let known = rows.iter().position(|row| row.used > 0 && row.key == key);
        let at = known.unwrap_or_else(|| {
            let first_to_go = |&at: &usize| (rows[at].is_used_again, rows[at].used);
            let oldest = (0..WAYS).min_by_key(first_to_go).unwrap_or_default();
            rows[oldest] = Row { key, ..Row::default() };
            oldest
        });
        rows[at].used = used;
        rows[at].is_used_again = known.is_some();
        &mut rows[at].value
    }

    fn set(&self, key: u64) -> usize {
        // The length is a power of two.
        (key >> 32) as usize & (self.sets.len() - 1)
    }
}
