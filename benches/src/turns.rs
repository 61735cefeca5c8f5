use std::env;
use std::fmt;

use crate::{Contender, Pace};

/// How the contenders of a row are run, and which rows are run.
#[derive(Debug)]
pub struct Turns {
    /// Without `--bench`, which `cargo bench` passes and `cargo test` does not, everything runs only once, to show
    /// that it works.
    measuring: bool,
    full: bool,
    wanted: Vec<String>,
}

impl Turns {
    /// As the command line says: its words choose the tables whose title contains one of them.
    pub fn from_args() -> Self {
        let arguments: Vec<_> = env::args().skip(1).collect();
        let measuring = arguments.iter().any(|argument| argument == "--bench");
        let full = arguments.iter().any(|argument| argument == "--full");
        let wanted = arguments.into_iter().filter(|word| !word.starts_with('-')).collect();
        Self { measuring, full, wanted }
    }

    /// Whether times are measured. If not, small populations are enough.
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Whether the command line has `--full`: more rounds, and rows that take too long for the short form.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the command line asks for this table, or for none in particular.
    pub fn wants(&self, title: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|word| title.contains(word.as_str()))
    }

    /// The time of one step, for each of the contenders, which take turns.
    pub fn take<const N: usize>(&self, contenders: [Contender<'_>; N]) -> [Figure; N] {
        let rounds = self.rounds(contenders.into(), Pace::USUAL);
        std::array::from_fn(|i| rounds.figure(i))
    }
}

/// The time of one step, in nanoseconds.
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
    /// The distribution of some turns.
    ///
    /// # Panics
    ///
    /// When there were none.
    pub fn of(mut turns: Vec<f64>) -> Self {
        turns.sort_by(f64::total_cmp);
        let at = |percent| turns[((turns.len() - 1) * percent + 50) / 100];
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
