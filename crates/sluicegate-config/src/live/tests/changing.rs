//! Changes that are made by hand.

use std::sync::mpsc::channel;

use sluicegate_core::Memory;
use sluicegate_core::rule::KnownLimits;
use sluicegate_tests::stores::TestStore;

use super::{Place, admits, everybody, in_force, policies};
use crate::Environment;
use crate::live::{Event, Follow, Live};
use sluicegate_tests::{Request, names};

#[test]
fn a_change_is_in_force_for_the_next_request_of_every_clone() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    let clone = live.clone();
    place.write(&everybody(20).replace("all", "everybody"));
    let changes = live.reload().expect("valid policies");
    assert_eq!(changes.to_string(), "added everybody; removed all");
    assert_eq!(names(&Request::default().charge(&clone)), ["everybody"]);
}

#[test]
fn what_is_not_valid_changes_nothing_and_says_what_is_wrong() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    for (text, wrong) in [
        ("", "there are no rules"),
        ("# Half of a file.\ntime_zone = \"UTC\"\n", "there are no rules"),
        ("rules = 7", "1:9"),
        (&everybody(0), "the count is 0"),
    ] {
        place.write(text);
        let problems = live.reload().expect_err("a broken file").to_string();
        assert!(problems.contains(wrong), "{text:?}: {problems}");
        assert!(problems.starts_with(&place.file().display().to_string()), "{problems}");
        assert!(admits(&live, 10));
    }
    std::fs::remove_file(place.file()).expect("a file");
    let problems = live.reload().expect_err("no file").to_string();
    assert!(problems.contains("there is no such file"), "{problems}");
    assert!(admits(&live, 10));
}

#[test]
fn no_rules_are_a_choice_if_they_are_said() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    place.write("rules = []");
    live.reload().expect("valid policies");
    assert!(in_force(&live).is_empty());
}

#[test]
fn a_file_that_says_the_same_as_before_is_no_event() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    let (send, events) = channel();
    live.on_event(move |event| send.send(event.to_string()).expect("the test is there"));
    let look = || {
        let mut snapshot = None;
        live.look(&mut snapshot);
        live.look(&mut snapshot);
    };
    let told = || events.try_iter().count();

    look();
    assert_eq!(told(), 0);
    place.exchange(&everybody(10));
    look();
    assert_eq!(told(), 0);
    // An error is reported once, not each time that the file is read.
    place.write("rules = 7");
    look();
    look();
    assert_eq!(told(), 1);
    std::fs::remove_file(place.file()).expect("a file");
    look();
    look();
    assert_eq!(told(), 1);
    // The file is back, with the same content.
    place.write(&everybody(10));
    look();
    look();
    let event = events.try_iter().collect::<Vec<_>>();
    assert_eq!(event, ["policies reloaded: nothing changed"]);
}

#[test]
fn everything_that_changed_is_told() {
    let first = "
        [customers]
        acme = \"paid\"
        [tiers.paid]
        limits = [\"10/second\"]
        [[rules]]
        name = \"kept\"
        key = \"ip\"
        limits = [\"1/second\"]
        [[rules]]
        name = \"key\"
        key = \"ip\"
        limits = [\"1/second\"]
        [[rules]]
        name = \"number\"
        key = \"ip\"
        limits = [\"1/second\"]
        [[rules]]
        name = \"gone\"
        key = \"ip\"
        limits = [\"1/second\"]
    ";
    let second = first
        .replace("acme", "other")
        .replace("name = \"key\"\n        key = \"ip\"", "name = \"key\"\n        key = \"path\"")
        .replace("name = \"gone\"", "name = \"new\"")
        .replacen(
            "\"number\"\n        key = \"ip\"\n        limits = [\"1/",
            "\"number\"\n        key = \"ip\"\n        limits = [\"2/",
            1,
        );
    let place = Place::with(first);
    let live = place.open();
    place.write(&second);
    let changes = live.reload().expect("valid policies");
    assert_eq!(changes.added, ["new"]);
    assert_eq!(changes.removed, ["gone"]);
    assert_eq!(changes.changed, ["key", "number"]);
    assert_eq!(changes.settings, ["customers"]);
    let [limit] = &changes.limits[..] else { panic!("{changes}") };
    assert_eq!(limit.name, "number");
    assert!(limit.old[0].to_string().starts_with("1/second"), "{limit}");
    assert!(limit.new[0].to_string().starts_with("2/second"), "{limit}");
    assert!(!changes.is_empty());
    assert!(live.reload().expect("valid policies").is_empty());
}

#[test]
fn a_change_of_period_is_told() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    place.write(&everybody(10).replace("10/minute", "10/hour"));
    let changes = live.reload().expect("valid policies");
    assert!(changes.limits[0].has_other_period() && changes.limits[0].begins_afresh());
    let told = changes.to_string();
    assert!(told.ends_with(" (another period: what was spent is not counted)"), "{told}");
    place.write(&everybody(20).replace("20/minute", "20/hour"));
    let changes = live.reload().expect("valid policies");
    assert!(!changes.limits[0].has_other_period() && !changes.limits[0].begins_afresh());
    assert!(!changes.to_string().contains("another period"), "{changes}");
}

/// The clients of one case have their whole budget again, and all clients after another key.
#[test]
fn a_change_that_resets_a_part_of_what_was_spent_is_told() {
    let text = r#"
        [[rules]]
        name = "api"
        key = "ip"
        limits = ["100/minute"]
        cases = [
            { when = { path = "/search" }, limits = ["10/minute"] },
            { when = { path = "/export" }, limits = ["5/minute"] },
        ]
    "#;
    let place = Place::with(text);
    let live = place.open();
    let told = |text: &str| {
        place.write(text);
        live.reload().expect("valid policies").to_string()
    };
    let case = text.replace("/export", "/exports");
    let changes = told(&case);
    assert!(changes.starts_with("api: "), "{changes}");
    assert!(changes.ends_with(" (what was spent is not counted)"), "{changes}");
    // A case that is added takes nothing away.
    let added = case.replace(
        "cases = [",
        "cases = [\n{ when = { path = \"/new\" }, limits = [\"1/minute\"] },",
    );
    let changes = told(&added);
    assert!(!changes.contains("not counted"), "{changes}");
    told(&case);
    // Other numbers keep what was spent.
    let numbers = case.replace("5/minute", "6/minute");
    let changes = told(&numbers);
    assert!(!changes.contains("not counted"), "{changes}");
    let key = numbers.replace("\"ip\"", "\"path\"");
    assert_eq!(told(&key), "changed api (another key: what was spent is not counted)");
}

#[test]
fn policies_that_code_made_are_replaced_by_code() {
    let live = Live::of(policies(&everybody(10)));
    let changes = live.replace(policies(&everybody(20))).expect("any store keeps them");
    assert_eq!(changes.limits.len(), 1);
    assert!(admits(&live, 20));
    let problems = live.reload().expect_err("no file").to_string();
    assert_eq!(problems, "these policies were not read from a file");
}

#[test]
fn a_listener_may_ask_for_the_policies_and_reload() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    let (send, events) = channel();
    let own = live.clone();
    live.on_event(move |event| {
        let Event::Refused(_) = event else { return };
        own.on_event(|_| {});
        own.replace(policies(&everybody(30))).expect("any store keeps them");
        send.send(in_force(&own)).expect("the test is there");
    });
    place.write("rules = 7");
    live.reload().expect_err("a broken file");
    assert!(events.try_recv().expect("it was told")[0].starts_with("30/minute"));
}

#[test]
fn a_limit_that_the_store_cannot_keep_is_refused() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    let store = TestStore::keeping(Memory::with_capacity(64), |limit| limit.capacity() <= 15);
    live.kept_by(store).expect("ten can be kept");
    place.write(&everybody(20));
    let problems = live.reload().expect_err("twenty cannot").to_string();
    assert!(problems.contains("the store cannot keep the limit `20/minute"), "{problems}");
    assert!(admits(&live, 10));
    live.replace(policies(&everybody(20))).expect_err("twenty cannot");
    assert!(admits(&live, 10));
}

#[test]
fn a_file_of_an_unknown_kind_is_refused() {
    let problems = Live::open("policies.ini", Environment::new()).expect_err("which format?");
    assert!(problems.to_string().contains("has to end in .toml"), "{problems}");
    let problems = Live::open("nowhere.toml", Environment::new()).expect_err("no file");
    assert!(problems.to_string().contains("there is no such file"), "{problems}");
}

#[test]
fn limits_are_known_as_those_in_force_are() {
    let live = Live::of(policies(&everybody(10)));
    let mut count = 0;
    live.each_limit(&mut |_| count += 1);
    assert_eq!(count, 1);
}
