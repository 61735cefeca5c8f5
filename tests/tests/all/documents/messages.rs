//! The compiler's messages for common mistakes. Each file in `messages/` contains one mistake, and begins with lines
//! that have to be in the compiler's output.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[test]
fn the_compiler_says_what_to_write_instead() {
    let root = super::root();
    let mistakes = root.join("tests/messages");
    let mut names: Vec<_> = fs::read_dir(&mistakes)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 7, "{names:?}");

    let said = said_of(&package(&root, &mistakes, &names));
    for name in names {
        let source = fs::read_to_string(mistakes.join(format!("{name}.rs"))).unwrap();
        let expected: Vec<_> = source.lines().map_while(|line| line.strip_prefix("//! ")).collect();
        assert!(!expected.is_empty(), "{name} expects nothing");

        let said =
            said.get(&name).unwrap_or_else(|| panic!("{name} compiles, or a dependency does not"));
        for line in expected {
            assert!(
                said.contains(line),
                "{name}: `{line}` is not in what the compiler says:\n{said}"
            );
        }
    }
}

/// A package with a program for each mistake, and the dependencies of this workspace.
fn package(root: &Path, mistakes: &Path, names: &[String]) -> PathBuf {
    let package = root.join("target/messages");
    fs::create_dir_all(&package).unwrap();
    let crates = root.join("crates");
    let mut manifest = format!(
        "[package]\nname = \"messages\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nsluicegate-axum = {{ path = {:?} }}\nactix-web = {{ version = \"4\", default-features = \
         false }}\naxum = {{ version = \"0.8\", default-features = false, features = [\"http1\", \"tokio\"] }}\n\
         tower = {{ version = \"0.5\", default-features = false, features = [\"util\"] }}\n",
        crates.join("sluicegate-axum"),
    );
    for name in names {
        let path = mistakes.join(format!("{name}.rs"));
        manifest += &format!("\n[[bin]]\nname = {name:?}\npath = {path:?}\n");
    }
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    package
}

/// What the compiler says of each program that does not compile.
fn said_of(package: &Path) -> BTreeMap<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["check", "--quiet", "--bins", "--keep-going", "--message-format", "json"])
        .current_dir(package)
        .env("CARGO_TARGET_DIR", package.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let mut said = BTreeMap::<String, String>::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let is_bin = message["target"]["kind"][0] == "bin";
        if is_bin && message["message"]["level"] == "error" {
            let name = message["target"]["name"].as_str().unwrap();
            *said.entry(name.to_owned()).or_default() +=
                message["message"]["rendered"].as_str().unwrap();
        }
    }
    said
}
