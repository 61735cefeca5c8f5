use sluicegate_throttle::adaptive::{Algorithm, Sample};

const SMOOTHING: f64 = 0.2;
/// Requests that may wait in the server.
const QUEUE: f64 = 4.0;
const TOLERANCE: f64 = 1.5;
/// Samples that the long mean follows, and those that it starts with.
const WINDOW: f64 = 600.0;
const WARM_UP: f64 = 10.0;

/// Compares the time of each request with a long mean of times.
#[derive(Debug, Clone)]
pub struct Gradient2 {
    limit: f64,
    min: f64,
    max: f64,
    long: f64,
    samples: f64,
}

impl Gradient2 {
    /// Starts at `limit` and stays between `min` and `max`.
    pub fn new(limit: usize, min: usize, max: usize) -> Self {
        let (limit, min, max) = (limit.max(1) as f64, min.max(1) as f64, max.max(1) as f64);
        Self { limit, min, max, long: 0.0, samples: 0.0 }
    }

    fn learn(&mut self, time: f64) {
        if self.samples < WARM_UP {
            self.samples += 1.0;
            self.long += (time - self.long) / self.samples;
        } else {
            self.long += (time - self.long) * 2.0 / (WINDOW + 1.0);
        }
    }
}

/// Starts at 20 and stays between 20 and 200.
impl Default for Gradient2 {
    fn default() -> Self {
        Self::new(20, 20, 200)
    }
}

impl Algorithm for Gradient2 {
    fn limit(&self) -> usize {
        self.limit as usize
    }

    fn update(&mut self, sample: Sample) {
        let time = sample.time.max(1) as f64;
        self.learn(time);
        if self.long / time > 2.0 {
            self.long *= 0.95;
        }
        if (sample.in_flight as f64) < self.limit / 2.0 {
            return;
        }
        let gradient = (TOLERANCE * self.long / time).clamp(0.5, 1.0);
        let limit = self.limit * gradient + QUEUE;
        self.limit += (limit - self.limit) * SMOOTHING;
        self.limit = self.limit.min(self.max).max(self.min);
    }

    fn baseline(&self) -> Option<u64> {
        (self.samples > 0.0).then_some(self.long as u64)
    }

    fn start_at(&mut self, limit: usize) {
        self.limit = (limit as f64).min(self.max).max(self.min);
    }
}
