//! The table against a map that forgets nothing: `cargo fuzz run table`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sluicegate_tests::operations::run(bytes));
