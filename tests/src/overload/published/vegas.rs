use sluicegate_throttle::adaptive::{Algorithm, Sample};

/// The unloaded time is measured again after this many times the limit of samples, times a number from 0.5 to 1.
const PROBE: f64 = 30.0;

/// Compares the time of each request with the shortest one: the difference tells how many requests wait in the server.
#[derive(Debug, Clone)]
pub struct Vegas {
    limit: f64,
    max: f64,
    /// Used instead of three and six times the logarithm of the limit.
    bounds: Option<(f64, f64)>,
    unloaded: u64,
    samples: f64,
    jitter: f64,
    random: u64,
}

impl Vegas {
    /// Starts at `limit` and stays at most `max`.
    pub fn new(limit: usize, max: usize) -> Self {
        Self {
            limit: limit.max(1) as f64,
            max: max.max(1) as f64,
            bounds: None,
            unloaded: 0,
            samples: 0.0,
            jitter: 1.0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Grows while fewer than `alpha` requests wait in the server, and shrinks while more than `beta` do.
    pub fn bounds(mut self, alpha: usize, beta: usize) -> Self {
        self.bounds = Some((alpha as f64, beta as f64));
        self
    }

    fn starts_probe(&mut self) -> bool {
        self.samples += 1.0;
        if self.samples < self.jitter * PROBE * self.limit {
            return false;
        }
        self.samples = 0.0;
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.jitter = 0.5 + (self.random >> 11) as f64 / (1_u64 << 54) as f64;
        true
    }
}

/// Starts at 20 and stays at most 1,000.
impl Default for Vegas {
    fn default() -> Self {
        Self::new(20, 1_000)
    }
}

impl Algorithm for Vegas {
    fn limit(&self) -> usize {
        self.limit as usize
    }

    fn update(&mut self, sample: Sample) {
        let time = sample.time.max(1);
        if self.starts_probe() || self.unloaded == 0 || time < self.unloaded {
            self.unloaded = time;
            return;
        }
        let log = self.limit.log10().floor().max(1.0);
        let waiting = (self.limit * (1.0 - self.unloaded as f64 / time as f64)).ceil();
        let (alpha, beta) = self.bounds.unwrap_or((3.0 * log, 6.0 * log));
        let limit = if sample.is_overload {
            self.limit - log
        } else if (sample.in_flight as f64) * 2.0 < self.limit {
            return;
        } else if waiting <= log {
            self.limit + beta
        } else if waiting < alpha {
            self.limit + log
        } else if waiting > beta {
            self.limit - log
        } else {
            return;
        };
        self.limit = limit.min(self.max).max(1.0);
    }

    fn baseline(&self) -> Option<u64> {
        (self.unloaded > 0).then_some(self.unloaded)
    }

    fn start_at(&mut self, limit: usize) {
        self.limit = (limit as f64).min(self.max).max(1.0);
    }
}
