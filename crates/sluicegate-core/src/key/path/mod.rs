//! The ways in which servers read the path of a request.

mod readings;
pub(crate) mod segments;
pub(crate) mod steps;

pub use self::readings::MAX_PATH;
pub(crate) use self::readings::{PathReading, PathReadings};
