//! Files of another kind than policies, read with the same errors; and policies asked rule by rule.

use std::path::PathBuf;
use std::time::Duration;

use http::Request;
use serde::Deserialize;
use sluicegate::adapter::HttpView;
use sluicegate_config::reader::{read_as, time};
use sluicegate_config::{Environment, Policies, read_toml};
use sluicegate_core::adapter::Charge;
use sluicegate_core::rule::Rule as _;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Shop {
    name: String,
    shelves: Vec<Shelf>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Shelf {
    room: u64,
    #[serde(default)]
    label: Option<String>,
}

fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(name);
    std::fs::write(&path, text).expect("a file");
    (directory, path)
}

#[test]
fn a_value_of_any_type_is_read_with_the_places_of_its_parts() {
    let toml = "name = \"a\"\n[[shelves]]\nroom = 1\n[[shelves]]\nroom = 2\nlabel = \"b\"\n";
    let json = "{\"name\": \"a\",\n\"shelves\": [{\"room\": 1},\n{\"room\": 2, \"label\": \"b\"}]}";
    let mut read = Vec::new();
    for (name, text, place) in [("a.toml", toml, "6:9"), ("a.json", json, "3:22")] {
        let (_directory, path) = file(name, text);
        let (shop, source) = read_as::<Shop>(&path).expect("a shop");
        let found = source.diagnostic("shelves[1].label", "too short").to_string();
        assert_eq!(found, format!("{place}: shelves[1].label: too short"));
        // What is missing has the place of the table that lacks it.
        let found = source.diagnostic("shelves[0].label", "none");
        assert_eq!(found.line(), Some(2));
        assert_eq!(source.diagnostic("", "all of it").path(), "");
        read.push(shop);
    }
    assert_eq!(read[0], read[1]);
}

#[test]
fn all_errors_of_form_are_told_at_once() {
    let (_directory, path) = file("a.toml", "nme = \"a\"\nshelves = [[1], { room = -1 }]\n");
    let problems = read_as::<Shop>(&path).expect_err("errors").to_string();
    for expected in [
        "a.toml:1:1: nme: `nme` is not known here; did you mean `name`?",
        "a.toml:2:12: shelves[0]: found a list, expected a table",
        "a.toml:2:26: shelves[1].room: found the integer `-1`",
    ] {
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
    let (_directory, path) = file("a.yaml", "");
    let problems = read_as::<Shop>(&path).expect_err("an error").to_string();
    assert!(problems.contains("has to end in .toml or .json"), "{problems}");
}

#[test]
fn durations_are_those_of_limits() {
    assert_eq!(time("90 seconds"), Some(Duration::from_secs(90)));
    assert_eq!(time("250 ms"), Some(Duration::from_millis(250)));
    for wrong in ["", "5", "5 parsecs", "-1 s", "1 s burst 2", "0 s"] {
        assert_eq!(time(wrong), None, "{wrong}");
    }
}

#[test]
fn rules_one_by_one_charge_what_all_of_them_charge() {
    let rule = |name: &str, path: &str| {
        format!(
            "[[rules]]\nname = {name:?}\nkey = \"host\"\nlimits = [\"1/s\"]\nwhen = {{ path = {path:?} }}\n"
        )
    };
    let text = rule("a", "/a") + &rule("b", "/b") + &rule("ab", "/{any}");
    let document = read_toml(&text).expect("a document");
    let policies = Policies::new(&document, &Environment::new()).expect("policies");
    assert_eq!(policies.rule_names().collect::<Vec<_>>(), ["a", "b", "ab"]);
    for (path, expected) in [("/a", &[0, 2][..]), ("/b", &[1, 2]), ("/c/d", &[])] {
        let request = Request::builder().uri(path).header("host", "a.example").body(());
        let request = request.expect("a request");
        let view = HttpView::<_>::new(&request);
        let found: Vec<_> = policies.candidates(&view).collect();
        assert_eq!(found, expected, "{path}");
        let (mut all, mut each) = (Charge::new(), Charge::new());
        policies.charge(&view, &mut all).expect("a charge");
        found.iter().for_each(|rule| policies.charge_by(*rule, &view, &mut each).expect("one"));
        let names = |charge: &Charge| -> Vec<_> {
            charge.debits().map(|debit| debit.limit.name().to_string()).collect()
        };
        assert_eq!(names(&all), names(&each), "{path}");
        assert_eq!(each.len(), expected.len());
    }
    let (view, mut charge) = (Request::new(()), Charge::new());
    policies.charge_by(7, &HttpView::<_>::new(&view), &mut charge).expect("no such rule");
    assert!(charge.is_empty());
}

#[test]
fn the_load_of_processors_can_be_said_instead_of_measured() {
    let text = "[[rules]]\nname = \"a\"\nkey = \"global\"\nlimits = [\"1/s\"]\n\
        cases = [{ while = { cpu = \"50%\" }, limits = [\"9/s\"] }]\n";
    let document = read_toml(text).expect("a document");
    for (share, count) in [(0.49, 9), (0.5, 1)] {
        let environment = Environment::new().cpu(move || share);
        let policies = Policies::new(&document, &environment).expect("policies");
        let (request, mut charge) = (Request::new(()), Charge::new());
        policies.charge(&HttpView::<_>::new(&request), &mut charge).expect("a charge");
        let counts: Vec<_> = charge.debits().map(|debit| debit.limit.count()).collect();
        assert_eq!(counts, [count]);
    }
}
