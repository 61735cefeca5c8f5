//! Known bugs of other rate limiters, each test named after its hazard. These are the ones that a store alone can
//! show. Those that need a request and a response are tested with the adapters.

#[path = "hazards_store/counting.rs"]
mod counting;
#[path = "hazards_store/fields.rs"]
mod fields;
#[path = "hazards_store/keys.rs"]
mod keys;
#[path = "hazards_store/settling.rs"]
mod settling;
#[path = "hazards_store/waiting.rs"]
mod waiting;

use std::time::Duration;

use sluicegate_core::{ManualClock, Memory};
use sluicegate_tests::Subject;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_micros(1);

fn memory() -> Subject<Memory> {
    memory_of(1_000)
}

fn memory_of(capacity: usize) -> Subject<Memory> {
    Subject::new(
        |clock: &ManualClock| Memory::builder().capacity(capacity).clock(clock).build(),
        |_| {},
    )
}
