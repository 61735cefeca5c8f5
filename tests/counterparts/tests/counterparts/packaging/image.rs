//! The Dockerfile.

use std::process::Command;

use serde_json::Value;
use sluicegate_counterparts::{find, root};

use crate::packaging::program::{assert_serves, read, words};

const FILE: &str = "packaging/docker/Dockerfile";

#[test]
fn hadolint_has_nothing_to_say_about_the_dockerfile() {
    let mut command = Command::new(find("hadolint"));
    let output = command.arg(FILE).current_dir(root()).output().expect("hadolint");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn hadolint_finds_what_is_wrong_with_a_dockerfile() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("Dockerfile");
    std::fs::write(&file, read(FILE).replace("WORKDIR /source", "WORKDIR source")).expect("a file");
    let output = Command::new(find("hadolint")).arg(file).output().expect("hadolint");
    assert!(String::from_utf8_lossy(&output.stdout).contains("DL3000"));
}

#[test]
fn every_image_that_ours_is_built_on_is_named_by_its_digest() {
    let text = read(FILE);
    let stages: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    let is_own = |stage: &&str| matches!(*stage, "base" | "base AS ratelimit");
    let images: Vec<_> = stages.into_iter().filter(|stage| !is_own(stage)).collect();
    assert_eq!(images.len(), 2);
    // Such a line names one more image, which reads the file, and takes no argument.
    assert!(!text.contains("# syntax="), "{text}");
    for image in images {
        let (_, digest) = image.split_once("@sha256:").expect("a digest");
        let digest = digest.split(' ').next().unwrap_or_default();
        assert!(digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{image}");
    }
}

#[test]
fn the_image_has_no_shell_and_another_user_than_root() {
    let text = read(FILE);
    let (_, last) = text
        .split_once("\nFROM gcr.io/distroless/static-debian12:nonroot@sha256:")
        .expect("a stage");
    assert!(
        last.contains("\nUSER 65532:65532\n") && last.contains("\nSTOPSIGNAL SIGTERM\n"),
        "{last}"
    );
    // There is no shell that could run a command or read a line of words.
    assert!(!last.contains("\nRUN "), "{last}");
    for word in ["CMD", "ENTRYPOINT"] {
        let lines = last.lines().filter(|line| line.contains(word));
        assert!(
            lines.clone().count() > 0 && lines.clone().all(|line| line.contains(" [\"")),
            "{last}"
        );
    }
}

#[test]
fn the_command_of_the_image_serves() {
    let text = read(FILE);
    let mut lists = text.lines().filter_map(|line| line.strip_prefix("CMD "));
    let list = lists.next_back().expect("a command");
    let list: Value = serde_json::from_str(list).expect("a list");
    let rules = root().join("packaging/rules.toml").display().to_string();
    let local = |word: String| word.replace("/etc/sluicegate/rules.toml", &rules);
    assert_serves(&words(&list).into_iter().map(local).collect::<Vec<_>>());
}

#[test]
fn what_the_image_copies_is_sent_to_the_builder() {
    let sent = read("packaging/docker/Dockerfile.dockerignore");
    for line in
        read(FILE).lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from"))
    {
        let files: Vec<_> = line.split(' ').skip(1).collect();
        for file in &files[..files.len() - 1] {
            assert!(root().join(file).exists(), "{file}");
            let folder = file.split('/').next().expect("a folder");
            let is_left_out = sent.lines().any(|line| line == folder);
            assert!(!is_left_out || sent.contains(&format!("!{file}")), "{file} is left out");
        }
    }
    // The workspace cannot be read without its members.
    for member in ["crates", "examples", "tests", "benches", "Cargo.lock"] {
        assert!(!sent.lines().any(|line| line == member), "{member} is left out");
    }
}
