//! Programs of other people, and our own.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sluicegate_counterparts::{find, root, sluicegate};

pub(crate) fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a script beside this file, with the packages that `cargo xtask counterparts` has put into this repository.
pub(crate) fn python(script: &str, arguments: &[&str], input: &str) -> Result<Value, String> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counterparts/packaging").join(script);
    let mut command = Command::new(find("python-with-schemas"));
    command.arg(file).args(arguments);
    command.current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("Python");
    child.stdin.take().expect("an input").write_all(input.as_bytes()).expect("it reads");
    let Output { status, stdout, stderr } = child.wait_with_output().expect("an output");
    let error = String::from_utf8_lossy(&stderr).into_owned();
    if !status.success() {
        return Err(error);
    }
    Ok(serde_json::from_slice(&stdout).expect("JSON"))
}

/// The program with the arguments of a container or a service, on free ports.
pub(crate) fn served(arguments: &[String], under: Option<Command>) -> Command {
    let ports = ["--grpc", "--http", "--admin"];
    let mut command = match under {
        Some(mut command) => {
            command.arg(sluicegate());
            command
        }
        None => Command::new(sluicegate()),
    };
    let is_port =
        |argument: &String| ports.iter().any(|port| argument.starts_with(&format!("{port}=")));
    command.args(arguments.iter().filter(|argument| !is_port(argument)));
    command.args(ports.map(|port| format!("{port}=127.0.0.1:0")));
    command.env_remove("SLUICEGATE_REDIS").env_remove("SLUICEGATE_ADMIN_TOKEN");
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Starts a server, lets it read its files again, and stops it as an orchestrator does.
pub(crate) fn assert_serves(arguments: &[String]) {
    assert_serves_as(served(arguments, None));
}

pub(crate) fn assert_serves_as(mut command: Command) {
    let mut child = command.spawn().expect("the program");
    let id = child.id().to_string();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &id]).status().expect("kill").success());
    };
    let log = BufReader::new(child.stderr.take().expect("a log"));
    let mut said = Vec::new();
    for line in log.lines() {
        let line = line.expect("text");
        if line.contains("serving") && line.contains("admin") {
            signal("-HUP");
        } else if line.contains("files read again") {
            signal("-TERM");
        }
        said.push(line);
    }
    let status = child.wait().expect("a status");
    assert!(status.success(), "{command:?}: {status}\n{}", said.join("\n"));
    assert!(said.iter().any(|line| line.contains("stopped")), "{said:?}");
}

/// The words of a JSON list.
pub(crate) fn words(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter().map(|word| word.as_str().expect("a word").to_owned()).collect()
}
