//! A file for `sluicegate proxy` says nothing that a proxy can never see.

use sluicegate_config::{Environment, Policies, read_toml};

const PROXY: &str =
    "[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nurl = \"http://127.0.0.1:1\"\n";

fn problem(text: &str) -> Option<String> {
    let document = read_toml(text).expect("a document");
    Policies::new(&document, &Environment::new()).err().map(|problem| problem.to_string())
}

#[test]
fn rules_that_a_proxy_cannot_see_are_errors_with_line_and_column() {
    for (rule, at) in [
        ("key = { claim = \"customer\" }", "key"),
        ("key = [\"ip\", { claim = \"customer\" }]", "key[1]"),
        ("key = { optional = { claim = \"customer\" } }", "key.optional"),
        ("key = { first = [{ claim = \"customer\" }, \"ip\"] }", "key.first[0]"),
        ("key = \"route\"", "key"),
        ("key = \"ip\"\nwhen = { claim = { plan = \"free\" } }", "when.claim"),
        ("key = \"ip\"\nwhen = { not = { route = \"/a\" } }", "when.not.route"),
        (
            "key = \"ip\"\nwhen = { any = [{ path = \"/a\" }, { route = \"/a\" }] }",
            "when.any[1].route",
        ),
        ("key = \"ip\"\nsettle = \"response\"", "settle"),
    ] {
        let text = format!("[[rules]]\nname = \"a\"\nlimits = [\"9/minute\"]\n{rule}\n");
        assert_eq!(problem(&text), None, "{rule}");
        let problem = problem(&format!("{PROXY}{text}")).expect("a problem");
        assert!(problem.contains(&format!("rules[0].{at}: ")), "{rule}: {problem}");
        let line = problem.split(':').next().and_then(|line| line.parse::<usize>().ok());
        assert!(line.is_some_and(|line| line > 4), "{rule}: {problem}");
    }
}

#[test]
fn tokens_are_not_settled_with_the_head() {
    let rule = "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"9/minute\"]\nsettle = { tokens = \"all\" }\n";
    assert_eq!(problem(rule), None);
    let problem = problem(&format!("hold_until = \"head\"\n{rule}")).expect("a problem");
    assert!(
        problem.contains("rules[0].settle: the tokens of an answer are known at the end"),
        "{problem}"
    );
}
