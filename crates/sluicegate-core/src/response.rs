//! What handlers and clients see of a decision in a response.

pub use crate::admission::gate::Redirect;
pub use crate::admission::lazy_decision::LazyDecision;
pub use crate::admission::respond::Degraded;
