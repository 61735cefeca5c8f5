//! Types that callers can build field by field, or match without a wildcard: a new field or variant breaks them.
//!
//! The file format and the settings get new parts with each release, so their types are `#[non_exhaustive]`, have a
//! private field, or are not public. A type that is open on purpose is in the list below.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The open types of `sluicegate-core`, each group with its reason.
const CORE: &[(&str, &[&str])] = &[
    (
        "services write them as values",
        &[
            "AllOf", "AnyOf", "ByClient", "ByServer", "Claim", "Const", "Cookie", "Cost", "Either",
            "Fallback", "First", "Header", "Not", "Optional", "Query",
        ],
    ),
    ("there are no others", &["ChosenBy", "Weekday"]),
    ("an adapter has to carry out each", &["Admission", "Field", "Piece", "Treatment", "Value"]),
    ("a store has to decide with each", &["Answer", "Single"]),
    (
        "a store sets up a breaker, and reports what it does",
        &["Backoff", "BreakerSettings", "Transition"],
    ),
    ("arithmetic that has these parts", &["Target", "Want", "WaterLevel"]),
];

/// The open types of `sluicegate-limit`.
const LIMIT: &[(&str, &[&str])] = &[
    ("a service that matches a decision has to treat each", &["Verdict"]),
    (
        "a store has to decide with each",
        &["Account", "Algorithm", "Attempt", "Carried", "Keys", "LimitOutcome", "Role", "WhenFull"],
    ),
    ("the core has to know each", &["CountedIn", "NamePiece"]),
];

/// The open types of `sluicegate-config`.
const CONFIG: &[(&str, &[&str])] = &[
    ("a place in a text has a line and a column", &["SourceLocation"]),
    (
        "a server reads and writes each in Envoy's messages",
        &[
            "Answer",
            "CurrentLimit",
            "Descriptor",
            "Hits",
            "Judgement",
            "Question",
            "Request",
            "Status",
            "Unit",
        ],
    ),
];

#[test]
fn a_new_key_or_setting_breaks_no_caller() {
    let crates =
        [("sluicegate-core", CORE), ("sluicegate-limit", LIMIT), ("sluicegate-config", CONFIG)];
    for (name, intended) in crates {
        let source = super::root().join("crates").join(name).join("src");
        let mut open = BTreeSet::new();
        each_source(&source, &mut |text| open.extend(open_types(text)));
        let intended = intended.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned());
        let intended: BTreeSet<_> = intended.collect();
        assert_eq!(
            open, intended,
            "{name}: give a new type `#[non_exhaustive]` or a private field, or add it to the list with its reason"
        );
    }
}

/// Calls `each` with every file of sources, without those of tests.
fn each_source(directory: &Path, each: &mut dyn FnMut(&str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            each_source(&path, each);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            each(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The names of the `pub` enums without `#[non_exhaustive]`, and of the `pub` structs that have only public fields. The
/// workspace warns of a `pub` item that nobody outside can reach.
fn open_types(source: &str) -> Vec<String> {
    let lines: Vec<_> = source.lines().collect();
    let mut open = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let item = line.trim_start().strip_prefix("pub ").and_then(|item| item.split_once(' '));
        let Some((kind @ ("enum" | "struct"), item)) = item else { continue };
        let name: String = item.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let above = lines[..at].iter().rev().map(|line| line.trim_start());
        let mut above = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        if above.any(|line| line == "#[non_exhaustive]") {
            continue;
        }
        // The item, up to the line that ends it with the indentation of its beginning.
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &&str| {
            let line = line.strip_prefix(indent).unwrap_or_default();
            line.starts_with(['}', ')']) || (line.ends_with(';') && !line.starts_with(' '))
        };
        let body = &lines[at..];
        let length = body.iter().position(|line| is_end(line) || line.ends_with("{}")).unwrap();
        let body = &body[..=length];
        let fields = match body {
            [line] => line.split_once('(').map(|(_, fields)| fields.split(',').collect()),
            [_, fields @ .., _] => Some(fields.to_vec()),
            [] => None,
        };
        let is_field = |line: &&str| {
            let line = line.trim_start();
            !(line.is_empty() || line.starts_with("//") || line.starts_with('#'))
        };
        let is_open = |field: &str| field.trim_start().starts_with("pub ");
        let fields = fields.unwrap_or_default();
        let mut fields = fields.iter().copied().filter(is_field).peekable();
        if kind == "enum" || (fields.peek().is_some() && fields.all(is_open)) {
            open.push(name);
        }
    }
    open
}

#[test]
fn what_callers_can_build_or_match_is_open() {
    let source = "\
#[derive(Debug)]
pub enum Open {
    One,
}
#[non_exhaustive]
#[derive(Debug)]
pub enum Growing {
    One,
}
pub struct Fields {
    /// One.
    pub one: u8,
    #[serde(default)]
    pub two: u8,
}
pub struct Hidden {
    pub one: u8,
    two: u8,
}
/// Not for others.
pub(crate) enum Inside {
    One,
}
pub struct Pair<A, B>(pub A, pub B);
pub struct Half<A, B>(pub A, B);
pub struct Marker;
";
    assert_eq!(open_types(source), ["Open", "Fields", "Pair"]);
}
