//! What `sluicegate-core` needs of the arithmetic beyond the public API. No part of the public API: it changes with any
//! version.

pub use crate::algorithm::sliding_log::{Log, MOST_ENTRIES};
pub use crate::algorithm::token_bucket::{PlainPart, TokenBucket};
pub use crate::by::IntoRule;
pub use crate::decide::would_admit;
pub use crate::earliest::{Earliest, StepResult};
pub use crate::exact::bounded;
pub use crate::inline_vec::{InlineVec, Iter};
pub use crate::outcome::{CountedIn, PlainOutcome};
pub use crate::text::NamePiece;
pub use crate::words::Words;
