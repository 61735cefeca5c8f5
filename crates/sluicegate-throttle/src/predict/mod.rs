//! What a request will cost, from what similar requests cost.
//!
//! ```
//! use sluicegate_throttle::Class;
//! use sluicegate_throttle::predict::Predictor;
//!
//! let mut predictor = Predictor::new(1_024, 1_000);
//! let (search, unknown) = (7, 8);
//! assert_eq!(predictor.predict(search, Class::CRITICAL).mean, 1_000);
//!
//! (0..16).for_each(|_| predictor.learn(search, Class::CRITICAL, 20_000));
//! assert_eq!(predictor.predict(search, Class::CRITICAL).mean, 20_000);
//! // What nobody has seen yet is taken for the mean of its class.
//! assert_eq!(predictor.predict(unknown, Class::CRITICAL).mean, 20_000);
//! ```

mod estimate;
#[cfg(test)]
mod tests;

use self::estimate::Estimate;
use crate::class::Class;
use crate::error::MAX_CLASSES;

/// Places that a key can be in. The one of these that was used least recently makes room for a new key.
const WAYS: usize = 4;

/// A sample counts as at most this many times the mean, so that one outlier does not lock the queue.
const OUTLIER: u64 = 64;

/// What is expected of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    /// The smoothed mean.
    pub mean: u64,
    /// About 95 of 100 such requests cost at most this.
    pub high: u64,
}

/// A bounded table of costs by key.
///
/// A key is a hash of what makes requests alike, such as the method and the route, under a secret seed. New keys push
/// out those that were used least recently; memory never grows.
#[derive(Debug)]
pub struct Predictor {
    sets: Box<[[Row; WAYS]]>,
    classes: [Estimate; MAX_CLASSES],
    first: u64,
    /// Counts uses, to tell which row was used least recently.
    uses: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    key: u64,
    used: u64,
    estimate: Estimate,
}

impl Predictor {
    /// Room for about `keys` keys. `first` is expected of the very first requests.
    pub fn new(keys: usize, first: u64) -> Self {
        let sets = keys.div_ceil(WAYS).clamp(1, 1 << 20).next_power_of_two();
        Self {
            sets: vec![[Row::default(); WAYS]; sets].into(),
            classes: Default::default(),
            first: first.max(1),
            uses: 0,
        }
    }

    /// What a request with this key will cost: the mean of its class for an unknown key.
    pub fn predict(&self, key: u64, class: Class) -> Prediction {
        let row = self.sets[self.set(key)].iter().find(|row| row.used > 0 && row.key == key);
        let known = row.and_then(|row| row.estimate.prediction());
        known.unwrap_or_else(|| self.expected(class))
    }

    /// A request with this key has cost this.
    pub fn learn(&mut self, key: u64, class: Class, cost: u64) {
        let expected = self.predict(key, class).mean;
        let is_first = self.classes.iter().all(|estimate| estimate.prediction().is_none());
        let most = if is_first { u64::MAX } else { expected.saturating_mul(OUTLIER) };
        let cost = cost.clamp(1, most);
        self.uses += 1;
        let (set, used) = (self.set(key), self.uses);
        let rows = &mut self.sets[set];
        let at = rows.iter().position(|row| row.used > 0 && row.key == key).unwrap_or_else(|| {
            let oldest = (0..WAYS).min_by_key(|&at| rows[at].used).unwrap_or_default();
            rows[oldest] = Row { key, ..Row::default() };
            oldest
        });
        rows[at].used = used;
        rows[at].estimate.learn(cost);
        self.classes[class.rank().min(MAX_CLASSES - 1)].learn(cost);
    }

    fn expected(&self, class: Class) -> Prediction {
        let own = self.classes[class.rank().min(MAX_CLASSES - 1)].prediction();
        let any = || self.classes.iter().find_map(Estimate::prediction);
        own.or_else(any).unwrap_or(Prediction { mean: self.first, high: self.first })
    }

    fn set(&self, key: u64) -> usize {
        // The length is a power of two.
        (key >> 32) as usize & (self.sets.len() - 1)
    }
}
