//! Limits of work in flight as Netflix' concurrency-limits learns them, with its constants.
//!
//! The limits of Vegas and Gradient2 are known to drift upwards under an overload that lasts, because their estimate of an
//! unloaded server's time follows the load. They are written here, because of the crates that have them, `tower-acc` 0.1
//! does not tell an overload from another error, and `tower-resilience-adaptive` 0.14 brings along its layers.

mod aimd;
mod gradient2;
#[cfg(test)]
mod tests;
mod vegas;

pub use self::aimd::Aimd;
pub use self::gradient2::Gradient2;
pub use self::vegas::Vegas;
