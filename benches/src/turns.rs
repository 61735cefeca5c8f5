use std::env;
use std::fmt;
use std::time::Duration;

use crate::Contender;

/// Turns that each contender gets. Odd, so that the median is one of them.
const ROUNDS: usize = 31;

/// How long a turn is: long enough that starting two threads does not show, short enough that a
/// disturbance of the machine hits all contenders alike.
const TURN: Duration = Duration::from_millis(20);

/// Runs this short only tell how long a turn has to be.
const TRIAL: Duration = Duration::from_millis(2);

/// How the contenders of a row are run, and which rows are.
#[derive(Debug)]
pub struct Turns {
    /// Without `--bench`, which `cargo bench` passes and `cargo test` does not, everything runs only
    /// once, to show that it works.
    measuring: bool,
    wanted: Vec<String>,
}

impl Turns {
    /// As the command line says: words in it choose the tables whose title holds one of them.
    pub fn from_args() -> Self {
        let arguments: Vec<_> = env::args().skip(1).collect();
        let measuring = arguments.iter().any(|argument| argument == "--bench");
        let wanted = arguments.into_iter().filter(|word| !word.starts_with('-')).collect();
        Self { measuring, wanted }
    }

    /// Whether times are taken. If not, small populations do.
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    pub(crate) fn wants(&self, title: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|word| title.contains(word.as_str()))
    }

    /// What one step takes, for each of the contenders, which take turns.
    pub fn take<const N: usize>(&self, mut contenders: [Contender<'_>; N]) -> [Figure; N] {
        let (rounds, times) = if self.measuring {
            (ROUNDS, contenders.each_mut().map(fill_a_turn))
        } else {
            (1, [1; N])
        };
        let mut turns = [const { Vec::new() }; N];
        for round in 0..rounds {
            // Nobody always follows the same one.
            for i in (0..N).map(|i| (i + round) % N) {
                // Not timed: the processor's caches still hold what the one before left there.
                contenders[i].run(times[i] / 2);
                let time = contenders[i].run(times[i]);
                turns[i].push(time.as_nanos() as f64 / times[i] as f64);
            }
        }
        turns.map(Figure::of)
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

/// What one step takes, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The median of all turns.
    pub median: f64,
    /// The tenth percentile.
    pub low: f64,
    /// The ninetieth percentile.
    pub high: f64,
}

impl Figure {
    fn of(mut turns: Vec<f64>) -> Self {
        turns.sort_by(f64::total_cmp);
        let at = |percent| turns[(turns.len() - 1) * percent / 100];
        Self { median: at(50), low: at(10), high: at(90) }
    }
}

/// The median, and in brackets the percentiles: `52.1 (51.8–53.0)`.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = if self.median < 100.0 { 1 } else { 0 };
        let Self { median, low, high } = self;
        write!(f, "{median:.places$} ({low:.places$}–{high:.places$})")
    }
}
