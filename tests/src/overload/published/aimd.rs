use sluicegate_throttle::adaptive::{Algorithm, Sample};

/// Additive increase, multiplicative decrease: one more for each success, a tenth less for each overload.
#[derive(Debug, Clone)]
pub struct Aimd {
    limit: usize,
    min: usize,
    max: usize,
}

impl Aimd {
    /// Starts at `limit` and stays between `min` and `max`.
    pub fn new(limit: usize, min: usize, max: usize) -> Self {
        Self { limit: limit.max(1), min: min.max(1), max: max.max(1) }
    }
}

/// Starts at 20 and stays between 20 and 200.
impl Default for Aimd {
    fn default() -> Self {
        Self::new(20, 20, 200)
    }
}

impl Algorithm for Aimd {
    fn limit(&self) -> usize {
        self.limit
    }

    fn update(&mut self, sample: Sample) {
        if sample.is_overload {
            // Nine tenths, rounded down.
            self.limit -= self.limit.div_ceil(10);
        } else if sample.in_flight >= self.limit.div_ceil(2) {
            self.limit = self.limit.saturating_add(1);
        }
        self.limit = self.limit.min(self.max).max(self.min);
    }

    fn start_at(&mut self, limit: usize) {
        self.limit = limit.min(self.max).max(self.min);
    }
}
