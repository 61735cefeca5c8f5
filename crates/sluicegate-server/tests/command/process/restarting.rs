//! Counts that survive a restart.

use std::path::Path;

use sluicegate_tests::servers::until;
use tempfile::TempDir;

use super::client::{Client, Sent};
use super::sluicegate::{Sluicegate, serve_with};

const TWO: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: year, requests_per_unit: 2 }
";

/// A server whose counts are in the file.
fn start(file: &Path) -> Sluicegate {
    serve_with(TWO, &["--state", file.to_str().expect("text")])
}

async fn send(server: &Sluicegate) -> Sent {
    Client::http_1(server.http).await.send().await
}

fn file() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counts");
    (folder, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_and_started_goes_on_counting() {
    let (_folder, file) = file();
    for expected in [Sent::Answered, Sent::Answered, Sent::Refused] {
        let mut server = start(&file);
        assert_eq!(send(&server).await, expected);
        server.signal("TERM");
        assert_eq!(server.ended().code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_goes_on_from_what_it_has_written() {
    let (_folder, file) = file();
    let length = || std::fs::metadata(&file).map_or(0, |file| file.len());
    for expected in [Sent::Answered, Sent::Answered, Sent::Refused] {
        let mut server = start(&file);
        let before = length();
        assert_eq!(send(&server).await, expected);
        if expected == Sent::Answered {
            until("a write", || (length() > before).then_some(()));
        }
        server.signal("KILL");
        server.ended();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_moved_aside_and_the_server_says_so() {
    let (folder, file) = file();
    std::fs::write(&file, "something else").expect("a file");
    let server = start(&file);
    server.says("cannot be read: it is not a file of counts");
    assert_eq!(send(&server).await, Sent::Answered);
    assert!(folder.path().join("counts.bad").exists());
}

#[test]
fn a_second_server_with_the_file_does_not_start() {
    let (_folder, file) = file();
    let _server = start(&file);
    let rules = file.with_file_name("ratelimit.yaml");
    std::fs::write(&rules, TWO).expect("a file");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.args(["serve", "--grpc", "off", "--http", "127.0.0.1:0", "--admin", "off"]);
    command.arg("--state").arg(&file).arg("--envoy").arg(&rules);
    let output = command.env_remove("SLUICEGATE_REDIS").output().expect("the command");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("--state: the file of counts"), "{error}");
    assert!(error.contains("another process, or another store, has it open"), "{error}");
}
