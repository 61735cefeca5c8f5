//! Traffic that looks recorded but is drawn, always the same, so that a run can be repeated.

use super::Rate;
use crate::keys::Draws;

/// One request: its cost, and when it comes, in microseconds since the first.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Microseconds since the first one.
    pub at: u64,
    /// How much it asks for.
    pub cost: u64,
}

/// Some traffic, and the limit that it is judged by.
#[derive(Debug)]
pub struct Traffic {
    /// A short description.
    pub name: &'static str,
    /// The limit that the contestants are asked to keep.
    pub rate: Rate,
    /// What each request costs.
    pub cost: u64,
    /// In order of time, the first at 0.
    pub requests: Vec<Request>,
}

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;

const MINUTELY: Rate = Rate::per_minute(60);

impl Traffic {
    /// All of it, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        let makers: [fn() -> Self; 8] = [
            Self::steady,
            Self::bursty,
            Self::day,
            Self::borders,
            Self::edge,
            Self::three_a_second,
            Self::seven_a_minute,
            Self::seven_hundred_million_a_second,
        ];
        makers.into_iter().map(|make| make())
    }

    /// A client that tries to keep to the limit and is 2 % too fast: one request every 0.98 s, plus or minus up to
    /// 0.2 s, for a day.
    fn steady() -> Self {
        let mut draws = Draws::below(400 * MILLISECOND, 1);
        let gap = move || 780 * MILLISECOND + draws.draw();
        Self::of_ones("steady, 60 per minute", MINUTELY, spaced(gap, DAY))
    }

    /// On and off, both with heavy tails (Pareto): 5 to 5,000 requests some 40 ms apart, then 5 s to an
    /// hour of silence, for a day.
    fn bursty() -> Self {
        let (mut lengths, mut gaps, mut silences) = (unit(2), unit(3), unit(4));
        let mut left = 0.0;
        let gap = move || {
            left -= 1.0;
            if left >= 0.0 {
                return exponential(&mut gaps, 40.0 * MILLISECOND as f64);
            }
            left = pareto(&mut lengths, 1.2, 5.0, 5_000.0);
            pareto(&mut silences, 1.3, 5.0 * SECOND as f64, HOUR as f64) as u64
        };
        Self::of_ones("bursty, 60 per minute", MINUTELY, spaced(gap, DAY))
    }

    /// The requests of many clients together (Poisson), a tenth of the limit at night and 1.3 times as
    /// much at the height of the day.
    fn day() -> Self {
        let (mut gaps, mut kept) = (unit(5), unit(6));
        let mut arrivals = vec![0];
        // Thinning: drawn at the highest rate, kept as often as the rate of that hour says.
        for at in spaced(move || exponential(&mut gaps, SECOND as f64 / 1.3), DAY) {
            let hour = std::f64::consts::TAU * at as f64 / DAY as f64;
            if kept() * 1.3 < 0.7 - 0.6 * hour.cos() {
                arrivals.push(at);
            }
        }
        Self::of_ones("a day of many clients, 60 per minute", MINUTELY, arrivals)
    }

    /// Against windows: one request as a window begins, 60 in its last 30 ms and 60 in the first 30 ms of the next;
    /// then silence. It makes no difference whether windows begin at a border or with a request.
    fn borders() -> Self {
        let period = MINUTELY.period;
        let around = (0..60).map(|i| period - (60 - i) * MILLISECOND / 2);
        let after = (0..60).map(|i| period + i * MILLISECOND / 2);
        let attack: Vec<u64> = std::iter::once(0).chain(around).chain(after).collect();
        let attacks = (0..DAY / (5 * period)).map(|i| i * 5 * period);
        let arrivals = attacks.flat_map(|start| attack.iter().map(move |at| start + at)).collect();
        Self::of_ones("around the borders of windows, 60 per minute", MINUTELY, arrivals)
    }

    /// Against buckets: twice the burst at once; then, 30 times, a request a millisecond before the next token and
    /// one just as it comes; then a silence, longer each time, up to two and a half periods.
    fn edge() -> Self {
        let token = MINUTELY.period / MINUTELY.count;
        let (mut at, mut arrivals) = (0, Vec::new());
        for silence in (0..300).map(|i| i * SECOND / 2) {
            arrivals.extend([at; 120]);
            arrivals.extend((1..=30).flat_map(|i| [at + i * token - MILLISECOND, at + i * token]));
            at += 30 * token + silence;
        }
        Self::of_ones("at the edge of a burst, 60 per minute", MINUTELY, arrivals)
    }

    /// A greedy client and a rate whose interval is no whole number of nanoseconds.
    fn three_a_second() -> Self {
        let rate = Rate::per_second(3);
        Self::of_ones("greedy, 3 per second", rate, spaced(|| 20 * MILLISECOND, HOUR))
    }

    fn seven_a_minute() -> Self {
        let rate = Rate::per_minute(7);
        Self::of_ones("greedy, 7 per minute", rate, spaced(|| 10 * MILLISECOND, HOUR))
    }

    /// 10^9 asked in every second, in parts of 100,000: an interval of 1.43 ns.
    fn seven_hundred_million_a_second() -> Self {
        let arrivals = spaced(|| MILLISECOND / 10, 100 * SECOND);
        let requests = arrivals.into_iter().map(|at| Request { at, cost: 100_000 }).collect();
        let (rate, cost) = (Rate::per_second(700_000_000), 100_000);
        Self { name: "greedy, 700,000,000 per second", rate, cost, requests }
    }

    fn of_ones(name: &'static str, rate: Rate, arrivals: Vec<u64>) -> Self {
        let requests = arrivals.into_iter().map(|at| Request { at, cost: 1 }).collect();
        Self { name, rate, cost: 1, requests }
    }
}

/// From 0 until `end`, each `gap` after the one before.
fn spaced(mut gap: impl FnMut() -> u64, end: u64) -> Vec<u64> {
    std::iter::successors(Some(0), |at| Some(at + gap())).take_while(|at| *at < end).collect()
}

/// Numbers in (0, 1], each as likely.
fn unit(seed: usize) -> impl FnMut() -> f64 {
    const RANGE: u64 = 1 << 31;
    let mut draws = Draws::below(RANGE, seed);
    move || (draws.draw() + 1) as f64 / RANGE as f64
}

fn exponential(unit: &mut impl FnMut() -> f64, mean: f64) -> u64 {
    (-mean * unit().ln()) as u64
}

fn pareto(unit: &mut impl FnMut() -> f64, shape: f64, least: f64, most: f64) -> f64 {
    (least * unit().powf(-1.0 / shape)).min(most)
}
