//! The answers of an algorithm: when a cost may come in, and what one step did.

use core::time::Duration;

use super::words::Words;

/// The earliest moment that a request may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earliest {
    /// In this many microseconds from now.
    At(u64),
    /// When somebody gives back what is held.
    Unknown,
    /// The cost is more than the limit ever allows.
    Never,
}

impl Earliest {
    /// How long that is from now, where it can be told.
    pub(super) fn time(self) -> Option<Duration> {
        match self {
            Self::At(delay) => Some(Duration::from_micros(delay)),
            Self::Unknown | Self::Never => None,
        }
    }
}

/// The result of spending from two words.
#[derive(Debug, Clone, Copy)]
pub enum StepResult {
    /// It is spent.
    Admit {
        /// The words after it.
        words: Words,
        /// In how many microseconds that equals a fresh one; `None`: when it is given back.
        fresh_in: Option<u64>,
    },
    /// Nothing has changed.
    Refuse(Earliest),
}
