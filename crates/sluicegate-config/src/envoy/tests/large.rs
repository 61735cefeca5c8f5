//! Large files, as programs write them: they are read in time proportional to their size, or refused.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::{headers, read_yaml_with_warnings};
use crate::document::Condition;
use crate::envoy::Descriptors;
use crate::{Environment, Policies};

const MANY: usize = 16_000;

/// Each of these takes a second at most, in a build without optimization. If the time grew with the square of the
/// size, it would be minutes.
const AT_MOST: Duration = Duration::from_secs(60);

const RATE: &str = "rate_limit: { unit: day, requests_per_unit: 1 }";

fn file(entry: impl Fn(usize, &mut String)) -> String {
    let mut text = "domain: d\ndescriptors:\n".to_owned();
    (0..MANY).for_each(|at| entry(at, &mut text));
    text
}

/// Reads and compiles; says how many rules there are, or the first problem.
fn read(text: &str, descriptors: &Descriptors) -> Result<usize, String> {
    let begun = Instant::now();
    let read = read_yaml_with_warnings(text, descriptors).and_then(|(document, _)| {
        Policies::new(&document, &Environment::new()).map(|_| document.rules.len())
    });
    assert!(begun.elapsed() < AT_MOST, "{:?}", begun.elapsed());
    read.map_err(|problems| {
        assert!(problems.iter().count() <= 100);
        problems.iter().next().expect("one").to_string()
    })
}

#[test]
fn many_values_of_one_key_are_quick() {
    let user = headers(&["user"]);
    let values =
        file(|at, text| writeln!(text, "- {{ key: user, value: v{at}, {RATE} }}").expect("room"));
    assert_eq!(read(&values, &user), Ok(MANY));
    let and_all_others = format!("{values}- {{ key: user, {RATE} }}\n");
    assert_eq!(read(&and_all_others, &user), Ok(MANY + 1));
    let named = file(|at, text| {
        writeln!(text, "- {{ key: generic_key, value: v{at}, {RATE} }}").expect("room");
    });
    let known = (0..MANY).fold(Descriptors::default(), |known, at| {
        known.when("generic_key", format!("v{at}"), Condition::default())
    });
    assert_eq!(read(&named, &known), Ok(MANY));
}

#[test]
fn many_keys_are_quick() {
    let keys: Vec<_> = (0..MANY).map(|at| format!("k{at}")).collect();
    let known = headers(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let text = file(|at, text| writeln!(text, "- {{ key: k{at}, {RATE} }}").expect("room"));
    assert_eq!(read(&text, &known), Ok(MANY));
    // No descriptor is known, so each is an error.
    assert!(read(&text, &Descriptors::default()).is_err());
    let one_map =
        format!("domain: d\n{}", (0..MANY).map(|at| format!("k{at}: 1\n")).collect::<String>());
    assert!(read(&one_map, &known).is_err_and(|problem| problem.contains("not known here")));
    let one_line = format!("{{{}}}", (0..MANY).map(|at| format!("k{at}: 1, ")).collect::<String>());
    assert!(read(&one_line, &known).is_err());
}

#[test]
fn many_that_are_the_same_are_quick() {
    let text = file(|_, text| writeln!(text, "- {{ key: user, {RATE} }}").expect("room"));
    assert!(read(&text, &headers(&["user"])).is_err_and(|problem| problem.contains("in line 3")));
}

#[test]
fn what_would_grow_with_the_square_is_refused() {
    let user = headers(&["user", "path"]);
    let wild = file(|at, text| {
        writeln!(text, "- {{ key: user, value: 'v{at}*', {RATE} }}").expect("room");
    });
    assert!(read(&wild, &user).is_err_and(|problem| problem.contains("expected 256 at most")));
    let mut below =
        file(|at, text| writeln!(text, "- {{ key: user, value: v{at} }}").expect("room"));
    below.push_str("- key: user\n  descriptors:\n");
    for at in 0..MANY {
        writeln!(below, "  - {{ key: path, value: v{at}, {RATE} }}").expect("room");
    }
    assert!(read(&below, &user).is_err_and(|problem| problem.contains("compare more than")));
    let replaced = file(|at, text| {
        let name = if at % 2 == 0 { "name: n" } else { "replaces: [{ name: n }]" };
        let rate = format!("rate_limit: {{ unit: day, requests_per_unit: 1, {name} }}");
        writeln!(text, "- {{ key: user, value: v{at}, {rate} }}").expect("room");
    });
    assert!(read(&replaced, &user).is_err_and(|problem| problem.contains("compare more than")));
}

#[test]
fn a_file_of_very_many_values_is_refused_before_it_takes_memory() {
    for text in [format!("[{}]", "a,".repeat(1_500_000)), "- b\n".repeat(1_500_000)] {
        let refused = read(&text, &Descriptors::default()).expect_err("too many");
        let expected = "there are too many values and names: expected 1000000 at most";
        assert!(refused.contains(expected), "{refused}");
    }
}
