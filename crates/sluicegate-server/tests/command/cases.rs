//! Cases that test files of rules.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn sluicegate(directory: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.args(arguments).current_dir(directory).output().expect("the command")
}

/// A directory with the rules and the cases on the page of the guide.
fn guide() -> TempDir {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sluicegate/src/guide/testing.md");
    let page = fs::read_to_string(page).expect("the page");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<_> = blocks.collect();
    let [rules, cases] = blocks[..] else { panic!("{} blocks", blocks.len()) };
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("rules.toml"), rules).expect("a file");
    fs::write(directory.path().join("cases.toml"), cases).expect("a file");
    directory
}

#[test]
fn the_five_cases_of_the_guide_pass_as_it_says() {
    let page = include_str!("../../../sluicegate/src/guide/testing.md");
    let output = sluicegate(&guide(), &["test", "cases.toml", "--rules", "rules.toml"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("5 passed, 0 failed\n"), "{said}");
    assert!(page.contains(&*said), "the page does not say:\n{said}");
}

/// Each rule is needed by one case at least.
#[test]
fn the_five_cases_of_the_guide_find_a_rule_that_is_missing() {
    let directory = guide();
    let rules = fs::read_to_string(directory.path().join("rules.toml")).expect("rules");
    for (wrong, instead) in [
        ("burst 10", "burst 11"),
        ("60/minute", "59/minute"),
        ("{ header = \"x-api-key\" }\nlimits = [\"60", "\"global\"\nlimits = [\"60"),
        ("count_if = [401]", ""),
        ("concurrent 2", "concurrent 3"),
    ] {
        assert!(rules.contains(wrong), "{wrong}");
        let changed = rules.replace(wrong, instead);
        fs::write(directory.path().join("rules.toml"), changed).expect("a file");
        let output = sluicegate(&directory, &["test", "cases.toml", "--rules", "rules.toml"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{wrong}: {said}");
        assert!(said.contains("FAILED") && said.contains("cases.toml:"), "{said}");
    }
}

#[test]
fn check_names_the_cases_beside_the_rules() {
    let directory = guide();
    fs::write(directory.path().join("login.cases.json"), "{}").expect("a file");
    fs::create_dir(directory.path().join("showcases.toml")).expect("a directory");
    let output = sluicegate(&directory, &["check", "--rules", "rules.toml"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let named: Vec<_> = said.lines().filter(|line| line.contains("sluicegate test")).collect();
    assert_eq!(
        named,
        [
            "cases to test it: sluicegate test cases.toml --rules rules.toml",
            "cases to test it: sluicegate test login.cases.json --rules rules.toml",
        ]
    );
}

#[test]
fn a_throttle_is_not_asked_and_that_is_told() {
    let directory = guide();
    let path = directory.path().join("rules.toml");
    let rules = fs::read_to_string(&path).expect("rules");
    let throttle = "[throttle]\ncapacity = { in_flight = 10 }\nqueue = \"1 s\"\n";
    fs::write(&path, format!("{throttle}{rules}")).expect("a file");
    let output = sluicegate(&directory, &["test", "cases.toml", "--rules", "rules.toml"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("rules.toml: its [throttle] is not asked"), "{said}");
}

#[test]
fn files_with_mistakes_run_no_case() {
    let directory = guide();
    fs::write(directory.path().join("bad.toml"), "[[cases]]\nname = 1\n").expect("a file");
    let output =
        sluicegate(&directory, &["test", "cases.toml", "bad.toml", "--rules", "rules.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("bad.toml:2:8: cases[0].name: found the integer `1`"), "{said}");
    assert!(said.contains("`requests` is missing"), "{said}");
}
