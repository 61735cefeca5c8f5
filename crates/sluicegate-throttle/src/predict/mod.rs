//! Predicts what a request will cost from the costs of similar requests and of other requests of its client.
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
//! // An unknown key is expected to cost the mean of its class.
//! assert_eq!(predictor.predict(unknown, Class::CRITICAL).mean, 20_000);
//! ```

mod estimate;
mod habit;
#[cfg(test)]
mod tests;

use self::estimate::Estimate;
use self::habit::Habit;
use crate::class::Class;
use crate::error::MAX_CLASSES;
use crate::table::Table;

/// A sample counts as at most this many times the mean, so that one outlier does not lock the queue.
const OUTLIER: u64 = 64;

/// The expected cost of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    /// The smoothed mean.
    pub mean: u64,
    /// About 95 of 100 such requests cost at most this.
    pub high: u64,
}

/// A bounded table of costs by key.
///
/// A key is a hash of what makes requests alike, such as the method and the route, under a secret seed. A new key
/// replaces one that was used only once or, if there is none, the one that was used least recently. Memory never grows.
#[derive(Debug)]
pub struct Predictor {
    routes: Table<Estimate>,
    flows: Table<Habit>,
    classes: [Estimate; MAX_CLASSES],
    first: u64,
}

impl Predictor {
    /// Room for about `keys` keys and the same number of flows. `first` is the expected cost of the very first
    /// requests.
    pub fn new(keys: usize, first: u64) -> Self {
        Self {
            routes: Table::new(keys),
            flows: Table::new(keys),
            classes: Default::default(),
            first: first.max(1),
        }
    }

    /// The expected cost of a request with this key. For an unknown key, it is the mean of the class.
    pub fn predict(&self, key: u64, class: Class) -> Prediction {
        let known = self.routes.value(key).and_then(Estimate::prediction);
        known.unwrap_or_else(|| self.expected(class))
    }

    /// The expected cost of a request with this key from this flow. If the flow's requests have cost more, or less,
    /// than others with the same keys, that is expected of this request too.
    pub fn predict_for(&self, key: u64, flow: u64, class: Class) -> Prediction {
        let expected = self.predict(key, class);
        let Some(habit) = self.flows.value(flow) else { return expected };
        Prediction { mean: habit.applied_to(expected.mean), high: habit.applied_to(expected.high) }
    }

    /// Whether the cost of this key has been learnt.
    #[cfg(feature = "_layer")]
    #[inline]
    pub(crate) fn knows(&self, key: u64) -> bool {
        self.routes.value(key).is_some()
    }

    /// The mean of [`predict_for`](Self::predict_for).
    #[cfg(feature = "_layer")]
    #[inline]
    pub(crate) fn mean_for(&self, key: u64, flow: u64, class: Class) -> u64 {
        let mean = self.mean(key, class);
        self.flows.value(flow).map_or(mean, |habit| habit.applied_to(mean))
    }

    /// Learns the cost of a request with this key.
    pub fn learn(&mut self, key: u64, class: Class, cost: u64) {
        let cost = self.bounded(self.mean(key, class), cost);
        self.learn_bounded(key, class, cost);
    }

    fn learn_bounded(&mut self, key: u64, class: Class, cost: u64) {
        self.routes.value_mut(key).learn(cost);
        self.classes[class.rank().min(MAX_CLASSES - 1)].learn(cost);
    }

    /// Learns the cost of a request with this key from this flow.
    pub fn learn_for(&mut self, key: u64, flow: u64, class: Class, cost: u64) {
        // If the key is new, compare with the mean of the class. That also catches a client that uses a new key each
        // time.
        let expected = self.mean(key, class);
        let cost = self.bounded(expected, cost);
        if !self.knows_nothing() {
            self.flows.value_mut(flow).learn(expected, cost);
        }
        self.learn_bounded(key, class, cost);
    }

    #[inline]
    fn mean(&self, key: u64, class: Class) -> u64 {
        let known = self.routes.value(key).and_then(Estimate::mean);
        known.unwrap_or_else(|| self.expected(class).mean)
    }

    fn bounded(&self, expected: u64, cost: u64) -> u64 {
        let most = if self.knows_nothing() { u64::MAX } else { expected.saturating_mul(OUTLIER) };
        cost.clamp(1, most)
    }

    fn knows_nothing(&self) -> bool {
        self.classes.iter().all(|estimate| estimate.prediction().is_none())
    }

    fn expected(&self, class: Class) -> Prediction {
        let own = self.classes[class.rank().min(MAX_CLASSES - 1)].prediction();
        let any = || self.classes.iter().find_map(Estimate::prediction);
        own.or_else(any).unwrap_or(Prediction { mean: self.first, high: self.first })
    }
}
