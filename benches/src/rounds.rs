use std::fmt;
use std::time::Duration;

use crate::{Contender, Figure, Turns};

/// Runs this short only measure how long a turn has to be.
const TRIAL: Duration = Duration::from_millis(2);

/// How the contenders of a row take turns.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Turns that each contender gets. Odd, so that the median is one of them.
    pub rounds: usize,
    /// How long a turn is: long enough that starting two threads does not show, short enough that a
    /// disturbance of the machine hits all contenders alike.
    pub turn: Duration,
    /// The time before each turn that is not measured: the processor's caches still hold the data of the turn before.
    pub warm_up: Duration,
}

impl Pace {
    /// For contenders with little data to fetch into the caches.
    pub const USUAL: Self =
        Self { rounds: 31, turn: Duration::from_millis(20), warm_up: Duration::from_millis(10) };
}

impl Turns {
    /// The time of one step, for each of the contenders, which take turns.
    pub fn rounds(&self, mut contenders: Vec<Contender<'_>>, pace: Pace) -> Rounds {
        let (rounds, times) = if self.is_measuring() {
            let times = contenders.iter_mut().map(|contender| fill_a_turn(contender, pace.turn));
            (pace.rounds, times.collect())
        } else {
            (1, vec![1; contenders.len()])
        };
        let warm_up = pace.warm_up.as_secs_f64() / pace.turn.as_secs_f64();
        let count = contenders.len();
        let mut turns = vec![Vec::with_capacity(rounds); count];
        for round in 0..rounds {
            // No contender always follows the same one.
            for i in (0..count).map(|i| (i + round) % count) {
                contenders[i].run((times[i] as f64 * warm_up) as u64);
                let time = contenders[i].run(times[i]);
                turns[i].push(time.as_nanos() as f64 / times[i] as f64);
            }
        }
        Rounds { turns }
    }
}

fn fill_a_turn(contender: &mut Contender<'_>, turn: Duration) -> u64 {
    let mut times = 1;
    loop {
        let time = contender.run(times);
        if time >= TRIAL {
            let turns = turn.as_secs_f64() / time.as_secs_f64();
            return ((times as f64 * turns) as u64).max(1);
        }
        times *= 2;
    }
}

/// For each contender, nanoseconds a step in each round.
#[derive(Debug, Default)]
pub struct Rounds {
    turns: Vec<Vec<f64>>,
}

impl Rounds {
    /// Adds further rounds of the same contenders.
    pub fn extend(&mut self, further: Self) {
        self.turns.resize_with(further.turns.len(), Vec::new);
        for (turns, further) in self.turns.iter_mut().zip(further.turns) {
            turns.extend(further);
        }
    }

    /// The time of a step of contender number `i`.
    pub fn figure(&self, i: usize) -> Figure {
        Figure::of(self.turns[i].clone())
    }

    /// The time of a step, for each contender.
    pub fn figures(&self) -> Vec<Figure> {
        (0..self.turns.len()).map(|i| self.figure(i)).collect()
    }

    /// The time of a step of contender `i` divided by that of contender `base`, in the same round. A disturbance that
    /// lasts for a round affects both and cancels out.
    pub fn ratio(&self, i: usize, base: usize) -> Ratio {
        let pairs = self.turns[i].iter().zip(&self.turns[base]);
        Ratio(Figure::of(pairs.map(|(turn, base)| turn / base).collect()))
    }

    /// The time of a step of contender number `i` minus that of number `base`, in the same round.
    pub fn difference(&self, i: usize, base: usize) -> Difference {
        let pairs = self.turns[i].iter().zip(&self.turns[base]);
        Difference(Figure::of(pairs.map(|(turn, base)| turn - base).collect()))
    }
}

/// A ratio of times: `1.23 (1.20–1.29)`.
#[derive(Debug, Clone, Copy)]
pub struct Ratio(pub Figure);

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { median, low, high } = self.0;
        write!(f, "{median:.2} ({low:.2}–{high:.2})")
    }
}

/// A difference of times, in nanoseconds: `+75 (+71–+83)`.
#[derive(Debug, Clone, Copy)]
pub struct Difference(pub Figure);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { median, low, high } = self.0;
        write!(f, "{median:+.0} ({low:+.0}–{high:+.0})")
    }
}
