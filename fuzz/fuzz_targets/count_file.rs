//! No file of counts makes the reader panic, and what it reads fits into the table: `cargo fuzz run count_file`.
//!
//! The first byte says whether the rest is a file, or the content of a page with the right checksums, which the fuzzer would
//! never find.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sluicegate_core::{ManualClock, Memory};

/// Shared, so that no time is lost with the machine's clock.
static CLOCK: LazyLock<ManualClock> = LazyLock::new(ManualClock::new);

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let builder = Memory::builder().capacity(16).clock(&*CLOCK);
    if let Some(store) = builder.read_only(bytes, first % 2 == 1) {
        // Three tables of at most 2 times the capacity and some spare buckets.
        assert!(store.len() <= 128);
    }
});
