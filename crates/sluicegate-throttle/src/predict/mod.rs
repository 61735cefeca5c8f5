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
mod run;
#[cfg(test)]
mod tests;

pub use self::estimate::Prediction;
#[cfg(feature = "_layer")]
use self::estimate::rounded;
use self::estimate::{Estimate, Sample};
use self::habit::Habit;
use crate::class::Class;
use crate::error::MAX_CLASSES;
use crate::table::Table;

/// The last requests, whose flows are known if their route changes. A power of two.
const LAST: usize = 16;

/// A bounded table of costs by key.
///
/// A key is a hash of what makes requests alike, such as the method and the route, under a secret seed. A new key
/// replaces one that was used only once or, if there is none, the one that was used least recently. Memory never grows.
#[derive(Debug)]
pub struct Predictor {
    routes: Table<Estimate>,
    flows: Table<Habit>,
    classes: [Estimate; MAX_CLASSES],
    /// The keys and flows of the last requests, in a ring.
    last: [(u64, u64); LAST],
    /// How many there have been.
    learnt: usize,
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
            last: Default::default(),
            learnt: 0,
            first: first.max(1),
        }
    }

    /// The expected cost of a request with this key. For an unknown key, it is the mean of the class.
    pub fn predict(&self, key: u64, class: Class) -> Prediction {
        self.prediction(key, class, |_| 1.0)
    }

    /// The expected cost of a request with this key from this flow. If the flow's requests have cost more, or less,
    /// than others with the same keys, that is expected of this request too, as far as flows are known to differ.
    pub fn predict_for(&self, key: u64, flow: u64, class: Class) -> Prediction {
        self.prediction(key, class, |estimate| self.factor(flow, estimate))
    }

    fn prediction(
        &self,
        key: u64,
        class: Class,
        factor: impl FnOnce(&Estimate) -> f64,
    ) -> Prediction {
        match self.estimate(key, class) {
            Some(estimate) => estimate.prediction(factor(estimate)),
            None => Prediction { mean: self.first, high: self.first },
        }
    }

    /// The mean of [`predict_for`](Self::predict_for), and whether the cost of this key has been learnt.
    #[cfg(feature = "_layer")]
    #[inline]
    pub(crate) fn mean_for(&self, key: u64, flow: u64, class: Class) -> (u64, bool) {
        let route = self.routes.value(key);
        let estimate = route.or_else(|| self.of_class(class));
        let mean = |estimate: &Estimate| rounded(self.factor(flow, estimate) * estimate.expected());
        (estimate.map_or(self.first, mean), route.is_some())
    }

    /// Learns the cost of a request with this key.
    pub fn learn(&mut self, key: u64, class: Class, cost: u64) {
        let actual = cost.max(1) as f64;
        let bounded = |estimate: &Estimate| estimate.bounded(estimate.expected(), actual);
        let cost = self.estimate(key, class).map_or(actual, bounded);
        let sample = Sample { cost, actual, factor: None };
        self.classes[at(class)].learn(sample);
        self.routes.value_mut(key).learn(sample);
    }

    /// Learns the cost of a request with this key from this flow.
    pub fn learn_for(&mut self, key: u64, flow: u64, class: Class, cost: u64) {
        let actual = cost.max(1) as f64;
        // If the key is new, compare with the mean of the class. That also catches a client that uses a new key each
        // time.
        let Some(estimate) = self.estimate(key, class) else {
            return self.learn(key, class, cost);
        };
        // Compared with the mean and not with what is owed as well: that is a correction of sums and no property of a flow.
        let (expected, factor) = (estimate.mean(), self.factor(flow, estimate));
        // Bounded by what was expected of this flow. A flow that is known to be dear is no outlier of its route.
        let cost = estimate.bounded(factor * expected, actual);
        let habit = self.flows.value_mut(flow);
        let (usual, requests) = habit.deviation();
        habit.learn(expected, cost);
        let sample = Sample { cost, actual, factor: Some(factor) };
        let learn = |estimate: &mut Estimate| {
            estimate.credibility.learn(cost / expected - 1.0, usual, requests);
            estimate.learn(sample)
        };
        // The class learns too: it stands in for keys that are not known yet.
        learn(&mut self.classes[at(class)]);
        let step = learn(self.routes.value_mut(key));
        self.learnt = self.learnt.wrapping_add(1);
        // Written before the step is looked at, so that the request that completed the run is among the last ones.
        self.last[self.learnt % LAST] = (key, flow);
        // The flows of the first requests after a step change seem to be dear, or cheap, which their route has become.
        if let Some(step) = step {
            let latest = (0..LAST).map(|back| self.last[self.learnt.wrapping_sub(back) % LAST]);
            let of_route = latest.filter(|(route, _)| *route == key);
            for (_, flow) in of_route.take(step.samples as usize) {
                // What they were compared with was wrong. They are new flows again, and learn by the new mean.
                self.flows.known_mut(flow).map(std::mem::take);
            }
        }
    }

    /// How many times the mean of a key this flow's requests are expected to cost.
    #[inline]
    fn factor(&self, flow: u64, estimate: &Estimate) -> f64 {
        self.flows.value(flow).map_or(1.0, |habit| habit.factor(&estimate.credibility))
    }

    /// What is known of the key, or of its class, or of any class.
    #[inline]
    fn estimate(&self, key: u64, class: Class) -> Option<&Estimate> {
        self.routes.value(key).or_else(|| self.of_class(class))
    }

    fn of_class(&self, class: Class) -> Option<&Estimate> {
        let own = &self.classes[at(class)];
        let mut all = std::iter::once(own).chain(&self.classes);
        all.find(|estimate| !estimate.is_empty())
    }
}

/// A rank below the lowest class counts as the lowest class.
fn at(class: Class) -> usize {
    class.rank().min(MAX_CLASSES - 1)
}
