use std::collections::HashMap;

use foldhash::fast::FixedState;

/// How many keys are counted separately. All others are counted together. Metrics have the same number of labels for
/// policies.
const KEYS: usize = 64;

/// How well costs are predicted: for each of the first keys, and for the rest together.
#[derive(Debug, Default)]
pub(super) struct Accuracy {
    rows: HashMap<u64, Row, FixedState>,
    others: Sums,
}

#[derive(Debug)]
struct Row {
    /// Where keys are shown.
    name: Option<Box<str>>,
    sums: Sums,
}

/// Of all requests whose cost was measured.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) requests: u64,
    pub(super) predicted: u64,
    pub(super) actual: u64,
    /// The sum of the absolute differences.
    pub(super) error: u64,
}

impl Accuracy {
    /// A request with this key has come.
    pub(super) fn see(&mut self, key: u64, name: impl FnOnce() -> Option<String>) {
        if self.rows.len() < KEYS && !self.rows.contains_key(&key) {
            let name = name().map(Into::into);
            self.rows.insert(key, Row { name, sums: Sums::default() });
        }
    }

    /// A request with this key has ended.
    pub(super) fn learn(&mut self, key: u64, predicted: u64, actual: u64) {
        let sums = self.rows.get_mut(&key).map_or(&mut self.others, |row| &mut row.sums);
        sums.requests += 1;
        sums.predicted = sums.predicted.saturating_add(predicted);
        sums.actual = sums.actual.saturating_add(actual);
        sums.error = sums.error.saturating_add(predicted.abs_diff(actual));
    }

    pub(super) fn all(&self) -> Sums {
        self.rows.values().fold(self.others, |sum, row| sum.plus(&row.sums))
    }

    /// The keys that are counted separately, and then the rest. Keys without a measured request are left out.
    pub(super) fn by_key(&self) -> impl Iterator<Item = (Option<&str>, Sums)> {
        let others = std::iter::once((None, self.others));
        let rows = self.rows.values().map(|row| (row.name.as_deref(), row.sums));
        rows.chain(others).filter(|(_, sums)| sums.requests > 0)
    }
}

impl Sums {
    fn plus(mut self, other: &Self) -> Self {
        self.requests += other.requests;
        self.predicted = self.predicted.saturating_add(other.predicted);
        self.actual = self.actual.saturating_add(other.actual);
        self.error = self.error.saturating_add(other.error);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_keys_takes_bounded_memory_and_none_is_lost() {
        let mut accuracy = Accuracy::default();
        for key in 0..10_000 {
            accuracy.see(key, || Some(key.to_string()));
            accuracy.learn(key, 3, 5);
            accuracy.learn(key, 7, 5);
        }
        assert_eq!(accuracy.by_key().count(), KEYS + 1);
        let all = accuracy.all();
        assert_eq!((all.requests, all.predicted, all.actual), (20_000, 100_000, 100_000));
        assert_eq!(all.error, 40_000, "errors in both directions do not cancel out");
    }
}
