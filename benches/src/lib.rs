//! What the benchmarks share: a harness in which contenders take turns, and the services that they
//! compare.
//!
//! A machine is never quiet: clocks change, neighbours come and go. So the contenders of a row do not
//! run one after the other but in turns of some milliseconds, and each figure is the median of many
//! turns, with the tenth and the ninetieth percentile beside it.

pub mod keys;
pub mod services;
pub mod wire;

pub mod accuracy;

mod contender;
mod paired;
mod report;
mod turns;

pub use self::contender::Contender;
pub use self::paired::{Difference, Paired};
pub use self::report::Table;
pub use self::turns::{Figure, Turns};
