//! A server with one core, its clients, and what stands between them. Time is simulated. The throttle is the real one,
//! and so are tower's layers.
//!
//! Handlers do not yield, so the core runs what was started one after the other. A [`Contender`] decides what is started
//! and when; [`run`] tells it what happens.

pub mod adaptive;
mod clients;
mod fifo;
pub mod published;
mod server;
mod throttled;
mod tower_limits;

pub use self::clients::{Clients, Flow, Group, Route, four_classes};
pub use self::fifo::Fifo;
pub use self::server::{Act, Contender, End, Job, Report, Request, run};
pub use self::throttled::Throttled;
pub use self::tower_limits::{ConcurrencyLimit, LoadShed};

/// Microseconds of the core that a cheap request needs.
pub const CHEAP: u64 = 1_000;

/// Microseconds of the core that a dear request needs.
pub const DEAR: u64 = 20_000;

/// How long a client waits for its answer, in microseconds.
pub const PATIENCE: u64 = 1_000_000;

/// The share of the core that the documentation shows.
pub const SHARE: f64 = 1.0;

/// What the core does in 0.2 s.
pub const QUEUE: u64 = 200_000;

/// As many requests as need 0.2 s on average.
pub const QUEUED: usize = 42;

/// Requests inside at once, for layers that count them.
pub const IN_FLIGHT: usize = 10;
