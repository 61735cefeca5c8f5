//! The store whose buckets are governor's, and the one around a limiter of somebody else.

mod around;
mod like_memory;
mod room;

use sluicegate_core::key::{KeyBuf, Part};

fn key(name: impl Part) -> KeyBuf {
    KeyBuf::of(name)
}
