//! What adapters for frameworks, and stores, are written against.
//!
//! Services do not need this module. It follows semantic versioning like the others, but changes of it are
//! expected more often.

#[doc(inline)]
pub use sluicegate_core::adapter::*;

pub use crate::view::{Framework, FrameworkBody, HttpView, MatchedRoute, Peer, Plain};
