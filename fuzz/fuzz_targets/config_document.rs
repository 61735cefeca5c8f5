//! Any text is read and compiled, or refused with the places of its errors: `cargo fuzz run config_document`.
#![no_main]

mod inside;

use libfuzzer_sys::fuzz_target;
use sluicegate_config::{Environment, Policies, read_json, read_toml};

fuzz_target!(|text: &str| {
    // A database would be a file of this machine, by a name that the fuzzer makes up.
    if text.contains("database") {
        return;
    }
    for read in [read_toml, read_json] {
        let compiled =
            read(text).and_then(|document| Policies::new(&document, &Environment::new()));
        if let Err(problems) = compiled {
            inside::stand_inside(&problems, text);
        }
    }
});
