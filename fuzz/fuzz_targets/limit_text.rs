//! A text that parses as a limit is printed as a text that parses as the same limit: `cargo fuzz run limit_text`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluicegate_core::Limit;
use sluicegate_core::limit::Limits;

fuzz_target!(|text: &str| {
    if let Ok(limit) = text.parse::<Limit>() {
        assert_eq!(limit.to_string().parse(), Ok(limit), "{text:?}");
    }
    if let Ok(limits) = text.parse::<Limits>() {
        assert_eq!(limits.to_string().parse(), Ok(limits), "{text:?}");
    }
});
