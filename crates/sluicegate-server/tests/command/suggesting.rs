//! From an access log to a file of rules.

use std::fmt::Write as _;
use std::process::{Command, Output, Stdio};

fn sluicegate(arguments: &[&str], stdin: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.args(arguments).stdin(stdin).output().expect("the command")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A log in which 50 clients ask for a page twice a minute.
fn log() -> String {
    let mut log = String::new();
    for second in 0..7_200 {
        let (hour, minute) = (10 + second / 3_600, second / 60 % 60);
        for client in (0..50).filter(|client| (second + client * 7) % 30 == 0) {
            let _ = writeln!(
                log,
                "192.0.2.{client} - - [10/Oct/2026:{hour:02}:{minute:02}:{:02} +0000] \"GET /{} HTTP/1.1\" 200 5 \"-\" \"agent {}\"",
                second % 60,
                second * client % 3,
                second / 60 % 2
            );
        }
    }
    log
}

#[test]
fn a_log_becomes_a_file_of_rules_that_check_accepts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let (log_file, rules_file) = (path("access.log"), path("rules.toml"));
    std::fs::write(&log_file, log()).expect("a log");
    let suggested = sluicegate(&["suggest", &log_file], Stdio::null());
    let (rules, said) = (text(&suggested.stdout), text(&suggested.stderr));
    assert!(suggested.status.success(), "{said}");
    assert!(said.contains("format: combined\n"), "{said}");
    assert!(said.contains("12,000 requests of 50 clients in 2.0 hours"), "{said}");
    assert!(said.contains("2.0 hours say nothing about a limit for a day"), "{said}");
    assert!(rules.starts_with("# sluicegate suggest --by 'ip'"), "{rules}");
    std::fs::write(&rules_file, &rules).expect("rules");
    let checked =
        sluicegate(&["check", "--rules", &rules_file, "--ip", "192.0.2.7"], Stdio::null());
    assert!(checked.status.success(), "{rules}\n{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("GET / is charged:"), "{}", text(&checked.stdout));
    // The same through a pipe.
    let file = std::fs::File::open(&log_file).expect("a log");
    let piped = sluicegate(&["suggest", "-"], file.into());
    assert_eq!(text(&piped.stdout), rules);
}

#[test]
fn what_cannot_be_read_is_said_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    std::fs::write(path("notes.txt"), "hello\n").expect("a file");
    std::fs::write(path("broken.log"), log() + &"nonsense\n".repeat(1_000)).expect("a file");
    for (file, expected) in [
        ("nowhere.log", "nowhere.log: No such file"),
        (".", "it is a directory, expected a log"),
        ("notes.txt", "name it with --format"),
        ("broken.log", "1000 of 13000 lines could not be read, more than 5 %"),
    ] {
        let failed = sluicegate(&["suggest", &path(file)], Stdio::null());
        let said = text(&failed.stderr);
        assert!(!failed.status.success() && failed.stdout.is_empty(), "{said}");
        assert!(said.starts_with("sluicegate: ") && said.contains(expected), "{said}");
    }
}

#[test]
fn a_page_has_the_windows_that_the_log_covers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    std::fs::write(path("access.log"), log()).expect("a log");
    let html = path("report.html");
    let suggested = sluicegate(&["suggest", &path("access.log"), "--html", &html], Stdio::null());
    assert!(suggested.status.success(), "{}", text(&suggested.stderr));
    let page = std::fs::read_to_string(&html).expect("a page");
    for window in ["1.0", "10.0", "60.0", "3600.0"] {
        assert!(page.contains(&format!("\"window\":{window},")), "{window}");
    }
    assert!(!page.contains("\"window\":86400") && page.len() < 100_000, "{}", page.len());
    // 50 clients with two requests in each minute.
    assert!(page.contains("\"steps\":[[1,0,6000],[2,50,6000]]"), "{page}");
    assert!(!page.contains("192.0.2."), "{page}");
}
