//! `tracing` events for the operator.

use sluicegate_tests::log::Log;

use super::{Place, everybody};
use crate::live::Live;
use crate::{Diagnostic, Environment, Format, PolicyFile};

/// The events while `run` runs.
fn told(run: impl FnOnce()) -> Vec<String> {
    let log = Log::of("sluicegate_config");
    let attached = log.attach();
    run();
    drop(attached);
    log.taken()
}

#[test]
fn what_became_of_each_change_is_told() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    let change = |text: &str| {
        place.write(text);
        told(|| drop(live.reload())).join("\n")
    };
    let reloaded = change(&everybody(20));
    assert!(reloaded.starts_with("INFO policies reloaded: all: 10/minute"), "{reloaded}");
    let refused = change("rules = 7");
    assert!(refused.starts_with("WARN policies not reloaded:"), "{refused}");
    assert!(refused.contains("policies.toml:1:9: "), "{refused}");
    std::fs::remove_file(place.file()).expect("a file");
    let missing = told(|| drop(live.reload())).join("\n");
    assert!(missing.starts_with("WARN policies not reloaded: there is no file "), "{missing}");
    // The end is told to whom the beginning is told.
    let reloaded = change(&everybody(30));
    assert!(reloaded.starts_with("WARN policies reloaded: all: 20/minute"), "{reloaded}");
    let reloaded = change(&everybody(40));
    assert!(reloaded.starts_with("INFO policies reloaded: all: 30/minute"), "{reloaded}");
}

#[test]
fn warnings_of_a_format_are_told() {
    let place = Place::with(&everybody(10));
    let format = Format::new(
        |text| {
            Ok((crate::read_toml(text)?, vec![Diagnostic::new("rules[0]", "this has no effect")]))
        },
        "there are no rules",
    );
    let file = PolicyFile::new(place.file()).format(format);
    let lines = told(|| drop(Live::open(file, Environment::new()).expect("valid policies")));
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.starts_with("WARN ") && line.contains("policies.toml:rules[0]: "), "{line}");
}
