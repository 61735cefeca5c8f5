//! What rules would have done to the requests of access logs.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

const RULES: &str = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"60/minute burst 10\"]\n";

/// A log of a minute: a request a second of one client, and ten a second of another one.
fn files() -> TempDir {
    let mut log = String::new();
    for second in 0..60 {
        let mut line = |ip: &str| {
            writeln!(
                log,
                "{ip} - - [24/Nov/2025:16:00:{second:02} +0000] \"GET /api/users?key=hunter2 HTTP/1.1\" 200 1 \"-\" \"-\""
            )
            .unwrap();
        };
        line("192.0.2.1");
        (0..10).for_each(|_| line("203.0.113.9"));
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("access.log"), log).expect("a file");
    fs::write(directory.path().join("rules.toml"), RULES).expect("a file");
    let wider = RULES.replace("burst 10", "burst 60");
    fs::write(directory.path().join("wider.toml"), wider).expect("a file");
    directory
}

fn replay(directory: &TempDir, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    let arguments = [&["replay", "access.log", "--rules", "rules.toml"], more].concat();
    command.args(arguments).current_dir(directory).output().expect("the command")
}

#[test]
fn a_report_says_how_many_who_when_and_where() {
    let files = files();
    let output = replay(&files, &["--show-keys", "--against", "wider.toml"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for expected in [
        "rules.toml: 660 requests from 2025-11-24T16:00:00Z to 2025-11-24T16:00:59Z\n",
        "531 refused (80.5 %), 129 served (19.5 %)\n",
        "\napi: 60/minute burst 10, by address\n",
        "  requests     660 from 2 clients\n",
        "  clients      1 (50.0 %) refused at least once\n",
        "  worst minute 2025-11-24T16:00:00Z, 531 refused\n",
        "  where        531 GET /api/users\n",
        "  who          531 ip:203.0.113.9\n",
        "against wider.toml, which refuses 481: 50 newly refused, 0 no longer refused\n",
        "  who          50 ip:203.0.113.9\n",
        "A client that is refused would have behaved differently afterwards",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("660 lines\nformat: combined"), "{said}");
}

#[test]
fn a_script_reads_json_and_the_exit_status() {
    let files = files();
    let output = replay(&files, &["--json", "--fail-above", "80%"]);
    assert_eq!(output.status.code(), Some(2));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["policies"][0]["refused"], 531);
    assert!(report["policies"][0]["who"][0][0].as_str().unwrap().starts_with('$'));
    assert_eq!(replay(&files, &["--fail-above", "80.5%"]).status.code(), Some(0));
    let keyed = RULES.replace("\"ip\"", "{ header = \"x-api-key\" }");
    fs::write(files.path().join("rules.toml"), keyed).expect("a file");
    assert_eq!(replay(&files, &["--fail-above", "99%"]).status.code(), Some(2));
    assert_eq!(replay(&files, &["--fail-above", "100%"]).status.code(), Some(0));
    let output = replay(&files, &["--fail-above", "0.8"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("such as 0.1%"));
}

#[test]
fn a_log_that_cannot_be_read_fails_after_what_was_found() {
    let files = files();
    let path = files.path().join("access.log");
    let log = fs::read_to_string(&path).expect("a log");
    fs::write(&path, log + &"nonsense\n".repeat(60)).expect("a file");
    let output = replay(&files, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("60 of 720 lines could not be read, more than 5 %"), "{said}");
}

#[test]
fn a_page_is_written_at_the_end_and_a_path_that_cannot_be_written_fails_before_the_log_is_read() {
    let files = files();
    let output = replay(&files, &["--html", "report.html"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(files.path().join("report.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.len() < 100_000, "{}", page.len());
    // One of two clients has 600 requests in its minute, and the other one 60.
    assert!(page.contains("\"window\":60.0,\"limit\":60,\"steps\":[[1,0,2],"), "{page}");
    assert!(page.contains("[60,1,2],[61,0,1],") && page.contains("[600,1,"), "{page}");
    // Nobody asked for addresses.
    assert!(!page.contains("203.0.113") && !page.contains("hunter2"), "{page}");
    for (path, expected) in [("nowhere/report.html", "No such file"), (".", "it is not a file")] {
        let output = replay(&files, &["--html", path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(output.stdout.is_empty() && !said.contains("660 lines"), "{said}");
        assert!(said.contains(&format!("--html: {path}")) && said.contains(expected), "{said}");
    }
    // The file of the page, the log and two files of rules.
    assert_eq!(fs::read_dir(files.path()).expect("a directory").count(), 4);
}
