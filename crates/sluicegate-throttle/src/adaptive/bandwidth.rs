use super::{Algorithm, Sample};

/// The factors that the limit is multiplied by, one for each phase. The first finds capacity that has become free. The
/// second empties the server's queue, so that the next requests take as long as in an unloaded server. Measuring never
/// lowers the limit by more than this fifth.
const PHASES: [f64; 6] = [1.1, 0.8, 1.0, 1.0, 1.0, 1.0];

/// The best rate and the best time of this many phases count. Any six phases in a row contain one of each kind.
const WINDOW: usize = PHASES.len();

/// A phase measures at least this many requests, and at least three times the limit. Otherwise requests that started
/// together and end together would look like a higher rate.
const SAMPLES: u64 = 64;
const ROUNDS: u64 = 3;

/// At the start, the limit grows by this factor each phase, as long as the rate grows by at least [`PLATEAU`].
const START: f64 = 1.5;
const PLATEAU: f64 = 1.2;

/// The server counts as overloaded in a phase if more than one in this many requests met an overload. A server with too
/// many requests fails most of them. Below an eighth it may be one client, or one route whose backend is down: in six
/// phases the limit grows by a tenth at most, so an overload in each of them would lower it without end.
const OVERLOADED: u64 = 8;

/// The limit is halved if more than this many clients leave unanswered for each one that is answered. With fewer, it may
/// be one route that hangs, and at half the limit the others would get half as much.
const ANSWERED: u64 = 3;

/// Until something was served, clients that leave sooner than this say nothing, in microseconds.
const EARLY: f64 = 100_000.0;

/// Multiplies the highest rate at which requests ended by the shortest mean time that they took. By Little's law, the
/// product is the number of requests that keeps the server busy without a queue inside it.
///
/// It learns only from phases in which the limit held requests back, so a quiet time changes nothing. It does not drift
/// under an overload that lasts, because one phase in six runs with a fifth less and measures the server without its
/// queue. It compares means over at least 64 requests, so handlers may differ in cost as long as their mix stays the
/// same.
#[derive(Debug, Clone)]
pub struct Bandwidth {
    base: f64,
    min: f64,
    max: f64,
    is_starting: bool,
    phase: usize,
    current: Phase,
    /// Requests in a second and mean microseconds of past phases.
    past: [Option<(f64, f64)>; WINDOW],
    /// Requests whose clients have left, less [`ANSWERED`] for each that was answered.
    unanswered: u64,
    /// The mean microseconds to the response of the last requests that were served.
    usual: Option<f64>,
}

/// All requests that end in the second part of a phase are measured. By then, requests that ran under the previous
/// limit are gone. Measuring only requests that began in the phase would favour short ones.
#[derive(Debug, Clone, Copy, Default)]
struct Phase {
    /// Requests that have ended before the measurement.
    settled: u64,
    /// When the measurement began.
    start: u64,
    ends: u64,
    time: u64,
    /// How many of the measured requests had taken the last place.
    held: u64,
    /// How many requests met an overload, measured or not.
    overloads: u64,
}

impl Bandwidth {
    /// Starts at `limit` and stays between `min` and `max`.
    pub fn new(limit: usize, min: usize, max: usize) -> Self {
        let (base, min, max) = (limit.max(1) as f64, min.max(1) as f64, max.max(1) as f64);
        let current = Phase::default();
        let past = [None; WINDOW];
        Self {
            base,
            min,
            max,
            is_starting: true,
            phase: 2,
            current,
            past,
            unanswered: 0,
            usual: None,
        }
    }

    fn end_phase(&mut self, now: u64) {
        let Phase { settled, start, ends, time, held, overloads } = self.current;
        self.current = Phase::default();
        let is_overloaded = overloads * OVERLOADED > settled + ends;
        if is_overloaded {
            // Before the check of the rate: an overload is a fact, however few requests the limit held back.
            self.base = (self.base * 0.9).max(self.min);
        }
        // The limit held few requests back, so the rate is what clients wanted and not what the server can do.
        if held * 2 < ends {
            return;
        }
        let rate = ends as f64 / now.saturating_sub(start).max(1) as f64;
        let mean = time as f64 / ends as f64;
        // Compared with the past before this phase joins it, or it would always equal the best.
        let best = self.past.iter().flatten().map(|(rate, _)| *rate).fold(0.0, f64::max);
        self.past.rotate_right(1);
        self.past[0] = Some((rate, mean));
        self.is_starting &= !is_overloaded && rate >= best * PLATEAU;
        if self.is_starting {
            self.base = (self.base * START).min(self.max);
            return;
        }
        self.phase = (self.phase + 1) % PHASES.len();
        // Once in each round of phases, so that a measurement that is wrong by chance counts once.
        if is_overloaded || PHASES[self.phase] != 1.0 || PHASES[self.phase - 1] == 1.0 {
            return;
        }
        let known = || self.past.iter().flatten();
        let rate = known().map(|(rate, _)| *rate).fold(0.0, f64::max);
        let mean = known().map(|(_, mean)| *mean).fold(f64::INFINITY, f64::min);
        // In steps as large as the probing phase has tried, and no larger.
        let most = (self.base * PHASES[0]).max(self.base + 1.0);
        self.base = (rate * mean).min(most).min(self.max).max(self.min);
    }
}

/// Starts at 20 and stays between 2 and 10,000.
impl Default for Bandwidth {
    fn default() -> Self {
        Self::new(20, 2, 10_000)
    }
}

impl Algorithm for Bandwidth {
    fn limit(&self) -> usize {
        let base = self.base.round();
        let limit = match PHASES[self.phase] {
            up if up > 1.0 => (base * up).round().max(base + 1.0),
            factor => (base * factor).round(),
        };
        limit.min(self.max).max(self.min) as usize
    }

    fn update(&mut self, sample: Sample) {
        let limit = self.limit() as u64;
        if let (Some(time), false) = (sample.answered, sample.is_overload) {
            self.unanswered = self.unanswered.saturating_sub(ANSWERED);
            let (time, usual) = (time as f64, self.usual.unwrap_or(time as f64));
            self.usual = Some(usual + (time - usual) / 16.0);
        }
        let phase = &mut self.current;
        phase.overloads += u64::from(sample.is_overload);
        if phase.settled < limit {
            phase.settled += 1;
            // The measurement begins with the last of the requests that started under the limit before.
            phase.start = sample.now;
            return;
        }
        phase.ends += 1;
        phase.time = phase.time.saturating_add(sample.time);
        // Its own place was the last one: at that moment, the limit held the next one back.
        phase.held += u64::from(sample.in_flight as u64 >= limit);
        if phase.ends >= SAMPLES.max(ROUNDS.saturating_mul(limit)) {
            self.end_phase(sample.now);
        }
    }

    /// Halves the limit if most clients leave.
    ///
    /// Above some limit, each request waits in the server for longer than its client does. Little is answered then, so
    /// little is measured that lowers the limit, and what is answered was quick by chance.
    fn update_unmeasured(&mut self, sample: Sample) {
        if sample.answered.is_some() {
            self.unanswered = self.unanswered.saturating_sub(ANSWERED);
            return;
        }
        let limit = self.limit();
        // A client that leaves sooner than others are answered says nothing about the load, and one that resets each
        // request at once must not lower the limit. Where the limit has held nobody back, a lower one does not help.
        let least = self.usual.unwrap_or(EARLY);
        if sample.in_flight < limit || (sample.time as f64) < least {
            return;
        }
        self.unanswered += 1;
        if self.unanswered >= ROUNDS.saturating_mul(limit as u64).max(SAMPLES / 4) {
            // What was measured at the limit before is not true of this one.
            *self = Self {
                base: (self.base / 2.0).max(self.min),
                // Nothing was served yet, so nothing is known.
                is_starting: self.usual.is_none(),
                current: Phase::default(),
                past: [None; WINDOW],
                unanswered: 0,
                ..*self
            };
        }
    }

    fn learnt(&self) -> usize {
        (self.base.round() as usize).max(1)
    }

    fn baseline(&self) -> Option<u64> {
        let means = self.past.iter().flatten().map(|(_, mean)| *mean);
        means.reduce(f64::min).map(|mean| mean as u64)
    }

    /// From there on, the limit moves in small steps, because a learnt limit is near the best one.
    fn start_at(&mut self, limit: usize) {
        self.base = (limit as f64).min(self.max).max(self.min);
        self.is_starting = false;
    }
}
