//! Known bugs of other rate limiters, each test named after its hazard. These are the ones that a store alone can
//! show. Those that need a request and a response are tested with the adapters.

mod counting;
mod fields;
mod keys;
mod settling;
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
