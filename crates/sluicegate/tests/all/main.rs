//! The layer and the limiter. What the layer has in common with the other adapters is in the parity suite in `tests/`.

mod common;
mod held;
mod in_flight;
mod keys;
mod leaving;
mod limiter;
#[cfg(feature = "metrics")]
mod metrics;
mod never;
mod rejections;
mod settling;
mod stores;
mod types;
mod waiting;
mod watch;
