//! Any text is read as a file of Envoy's rate limit service, or refused with the places of its errors. A document
//! that is read compiles, or is refused with the places of its errors: `cargo fuzz run envoy_document`.
#![no_main]

mod inside;

use libfuzzer_sys::fuzz_target;
use sluicegate_config::document::Key;
use sluicegate_config::{Environment, Policies};
use sluicegate_config::envoy::{Descriptors, read_yaml};

fuzz_target!(|text: &str| {
    let descriptors = ["a", "b", "user"].into_iter().fold(Descriptors::default(), |known, key| {
        known.with(key, Key::Header(key.to_owned()))
    });
    let compiled = read_yaml(text, &descriptors)
        .and_then(|document| Policies::new(&document, &Environment::new()));
    if let Err(problems) = compiled {
        inside::stand_inside(&problems, text);
    }
});
