use std::fmt;
use std::time::Duration;

use crate::{Contender, Figure, Turns};

/// Turns that each contender gets. Odd, so that the median is one of them.
const ROUNDS: usize = 31;

/// Long enough that reading the clock does not show, short enough that a disturbance of the machine hits
/// all contenders alike.
const TURN: Duration = Duration::from_millis(20);

/// Runs this short only tell how long a turn has to be.
const TRIAL: Duration = Duration::from_millis(2);

/// What contenders that took turns were measured to do, round by round.
///
/// So each can be held against another in the same round, where what both have in common drops out, and
/// a disturbance that lasts for a round as well.
#[derive(Debug)]
pub struct Paired {
    rounds: Vec<Vec<f64>>,
}

impl Paired {
    /// What one step takes, in nanoseconds.
    pub fn take(turns: &Turns, mut contenders: Vec<Contender<'_>>) -> Self {
        let (rounds, times) = if turns.is_measuring() {
            (ROUNDS, contenders.iter_mut().map(fill_a_turn).collect())
        } else {
            (1, vec![1; contenders.len()])
        };
        let count = contenders.len();
        let mut taken = vec![Vec::with_capacity(rounds); count];
        for round in 0..rounds {
            // Nobody always follows the same one.
            for i in (0..count).map(|i| (i + round) % count) {
                // Not timed: the processor's caches still hold what the one before left there.
                contenders[i].run(times[i] / 2);
                let time = contenders[i].run(times[i]);
                taken[i].push(time.as_nanos() as f64 / times[i] as f64);
            }
        }
        Self { rounds: taken }
    }

    /// What a step of number `i` takes.
    pub fn figure(&self, i: usize) -> Figure {
        spread(self.rounds[i].clone())
    }

    /// How much longer a step of number `i` takes than one of number `base`.
    pub fn difference(&self, i: usize, base: usize) -> Difference {
        let pairs = self.rounds[i].iter().zip(&self.rounds[base]);
        Difference(spread(pairs.map(|(turn, base)| turn - base).collect()))
    }
}

fn fill_a_turn(contender: &mut Contender<'_>) -> u64 {
    let mut times = 1;
    loop {
        let time = contender.run(times);
        if time >= TRIAL {
            let turns = TURN.as_secs_f64() / time.as_secs_f64();
            return ((times as f64 * turns) as u64).max(1);
        }
        times *= 2;
    }
}

/// The median of what was measured, and the percentiles.
pub(crate) fn spread(mut measured: Vec<f64>) -> Figure {
    measured.sort_by(f64::total_cmp);
    let at = |percent| measured[(measured.len() - 1) * percent / 100];
    Figure { median: at(50), low: at(10), high: at(90) }
}

/// How much longer one takes than the other, in nanoseconds: `+75 (+71–+83)`.
#[derive(Debug, Clone, Copy)]
pub struct Difference(pub Figure);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { median, low, high } = self.0;
        write!(f, "{median:+.0} ({low:+.0}–{high:+.0})")
    }
}
