//! Errors of documents that can be read but make no sense.

mod document;
mod limits;
mod requests;

use sluicegate_config::{Document, Environment, Policies, PolicyError, read_json, read_toml};

/// The errors in a TOML document. The same document in JSON must have the same errors, with places in its text.
fn problems(toml: &str) -> String {
    let problems = compile(read_toml(toml));
    let value: serde_json::Value = toml::from_str(toml).expect("TOML");
    let json = serde_json::to_string_pretty(&value).expect("JSON");
    let in_json = compile(read_json(&json));
    let told = |problems: &PolicyError| {
        let told = |problem: &sluicegate_config::Diagnostic| {
            format!("{}: {}", problem.path(), problem.message())
        };
        let mut told: Vec<_> = problems.iter().map(told).collect();
        told.sort();
        told
    };
    assert_eq!(told(&in_json), told(&problems));
    assert!(in_json.iter().all(|problem| problem.line() > Some(1)), "{in_json}");
    problems.to_string()
}

fn compile(document: Result<Document, PolicyError>) -> PolicyError {
    let document = document.expect("it can be read");
    Policies::new(&document, &Environment::new()).expect_err("something is wrong")
}

/// The errors in a rule that has a name, a key, and these lines from the fourth line on.
fn rule(rest: &str) -> String {
    problems(&format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\n{rest}\n"))
}

/// The same for a rule that has a limit.
fn limited(rest: &str) -> String {
    rule(&format!("{rest}\nlimits = [\"5/second\"]"))
}
