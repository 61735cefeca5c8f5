//! The API for adapters to frameworks, and for stores.
//!
//! Services do not need this module. It follows semantic versioning like the others, but changes of it are
//! expected more often.

pub use crate::admission::admit::Admission;
pub use crate::admission::enforcer::{AsEnforcer, Enforcer, Hold, LeaveDecision, client_error};
pub use crate::admission::gate::{Gate, Treatment};
pub use crate::admission::known_limit::KnownLimit;
pub use crate::admission::lazy_decision::Extensions;
pub use crate::admission::paid::{
    BodyGuard, HeaderLines, Paid, Piece, ReplyHead, ReplyRecord, poll_guarded,
};
pub use crate::admission::pending::Pending;
pub use crate::admission::refusal::Refusal;
pub use crate::admission::respond::{Refused, ResponseHead};
pub use crate::admission::unserved::{is_charged, listen_unserved, note_spent, note_unserved};
pub use crate::clock::sleep::{Sleep, Timer};
pub use crate::condition::{Index, Target};
pub use crate::config_error::ConfigError;
pub use crate::cost::account::Reply;
pub use crate::http::dialect::{AnyDialect, Dialect};
pub use crate::http::fields;
pub use crate::http::grpc;
pub use crate::http::headers::{Field, Headers, Value, is_stored_for_others};
pub use crate::key::hash::{ByHash, Hashed, KeyHash};
#[doc(hidden)]
pub use crate::key::path::steps::{step, steps};
pub use crate::key::tag::KeyTag;
pub use crate::observe::counts::{Counter, Counters};
pub use crate::observe::observer::Observer;
pub use crate::rule::cases::charge_together;
pub use crate::store::background::{Background, Reservation};
pub use crate::store::charge::{Charge, Debit};
pub use crate::store::fleet::WaterLevel;
pub use crate::store::set_spent::SetSpent;
pub use crate::store::{Answer, AtOnce};
#[doc(inline)]
pub use sluicegate_limit::{Attempt, Keys, Outcome, Receipt, State, decide, preview, remote};

/// The circuit breaker of stores that decide elsewhere.
pub mod breaker {
    pub use crate::store::breaker::{
        Backoff, Breaker, BreakerSettings, BreakerState, Permit, Transition,
    };
}

/// The highest count of each key in a window, for servers that show whom a limit would touch.
pub mod peaks {
    pub use crate::observe::peaks::{LEVELS, PeakStep, Peaks, level, level_of};
}
