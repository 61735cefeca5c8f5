//! The image, where Docker runs. Elsewhere, `cargo xtask counterparts` only reads its file, by hadolint.

use std::process::{Command, Stdio};

use crate::step::{Failure, Step, root};

const FILE: &str = "packaging/docker/Dockerfile";
const NAME: &str = "sluicegate";

/// Builds the image and asks it for its version. Returns what could not be checked.
pub(super) fn build() -> Result<Vec<String>, Failure> {
    if !docker_runs() {
        let what = "the image was not built, because no Docker daemon runs here: the same program was built without it";
        return Ok(vec![what.to_owned()]);
    }
    let mut command = docker(&["build", "--file", FILE, "--tag", NAME, "."]);
    command.env("DOCKER_BUILDKIT", "1");
    Step::new("image", command).run()?;
    let command = docker(&["run", "--rm", "--read-only", "--cap-drop", "ALL", NAME, "--version"]);
    Step::new("the program of the image", command).run()?;
    Ok(Vec::new())
}

fn docker(words: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(words).current_dir(root());
    command
}

fn docker_runs() -> bool {
    let mut command = docker(&["info"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_built_by_the_command_that_is_run_here() {
        let text = std::fs::read_to_string(root().join(FILE)).unwrap_or_default();
        let words =
            "cargo build --locked --profile dist --target \"$target\" --package sluicegate-server";
        assert!(text.contains(words), "{text}");
        assert!(text.contains("target=\"$(uname -m)-unknown-linux-musl\""), "{text}");
        assert!(text.contains("musl-tools"), "{text}");
    }
}
