//! Shared code of the benchmarks: a harness in which contenders take turns, and the services that they compare.
//!
//! A machine is never quiet. So the contenders of a row do not run one after the other, but in turns of some
//! milliseconds. Each figure is the median of many turns, with the tenth and the ninetieth percentile beside it.

pub mod direct;
pub mod floor;
pub mod keys;
pub mod load;
pub mod process;
#[cfg(feature = "server")]
pub mod quota;
pub mod remote;
pub mod services;
pub mod wire;

pub mod accuracy;

mod contender;
mod histogram;
mod report;
mod rounds;
mod sheets;
mod turns;

pub use self::contender::Contender;
pub use self::histogram::Histogram;
pub use self::report::Table;
pub use self::rounds::{Difference, Pace, Ratio, Rounds};
pub use self::sheets::Sheets;
pub use self::turns::{Figure, Turns};
