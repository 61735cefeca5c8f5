//! The Debian package, with completions and manual pages that the program itself writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{PLACE, target};
use crate::counterparts::program::{self, Program, Source};
use crate::step::{Failure, Step, root};
use crate::tools::Tool;

const CARGO_DEB: Tool = Tool::new("deb", "3.8.0");

/// Checks packages by Debian's policy. Other systems may not have it.
const LINTIAN: Program = Program { names: &["lintian"], source: Source::Package("lintian") };

/// Shells for which Debian has a place.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Files that the package has to have.
const FILES: [&str; 9] = [
    "usr/bin/sluicegate",
    "usr/lib/systemd/system/sluicegate.service",
    "etc/sluicegate/rules.toml",
    "etc/default/sluicegate",
    "usr/share/man/man1/sluicegate.1.gz",
    "usr/share/man/man1/sluicegate-serve.1.gz",
    "usr/share/bash-completion/completions/sluicegate",
    "usr/share/zsh/vendor-completions/_sluicegate",
    "usr/share/fish/vendor_completions.d/sluicegate.fish",
];

/// Makes the package, unpacks it, and runs what is in it.
pub(super) fn build(program: &Path) -> Result<(), Failure> {
    let place = root().join(PLACE);
    let _ = fs::remove_dir_all(&place);
    write_manual(program)?;

    let installed = CARGO_DEB.installed();
    let installed = installed.ok_or_else(|| Failure("there is no cargo-deb".to_owned()))?;
    let file = place.join("sluicegate.deb");
    let mut command = installed.command();
    command.args(["--no-build", "--no-strip", "--profile", "dist", "--target", &target()]);
    command.args(["--package", "sluicegate-server", "--output"]).arg(&file);
    Step::new("Debian package", command).run()?;

    if !LINTIAN.is_there() {
        program::install(&[&LINTIAN]);
    }
    if LINTIAN.is_there() {
        let mut command = Command::new("lintian");
        command.args(["--fail-on", "error,warning"]).arg(&file);
        Step::new("lintian", command).run()?;
    }

    let unpacked = place.join("unpacked");
    let mut command = Command::new("dpkg-deb");
    command.arg("--extract").arg(&file).arg(&unpacked);
    Step::new("Debian package, unpacked", command).run()?;
    let missing: Vec<_> = FILES.into_iter().filter(|file| !unpacked.join(file).is_file()).collect();
    if !missing.is_empty() {
        return Err(Failure(format!("the Debian package has no {}", missing.join(", "))));
    }
    let mut command = Command::new(unpacked.join("usr/bin/sluicegate"));
    command.args(["check", "--rules"]).arg(unpacked.join("etc/sluicegate/rules.toml"));
    Step::new("the program of the Debian package, with its rules", command).run()
}

fn write_manual(program: &Path) -> Result<(), Failure> {
    let help = printed(program, &["--help"])?;
    write("man/sluicegate.1", &printed(program, &["man"])?)?;
    for command in commands(&help) {
        write(&format!("man/sluicegate-{command}.1"), &printed(program, &["man", command])?)?;
    }
    for shell in SHELLS {
        let script = printed(program, &["completions", shell])?;
        write(&format!("completions/sluicegate.{shell}"), &script)?;
    }
    Ok(())
}

/// The names below `Commands:`, without `help`.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // The lines of a long description begin farther right.
    let names = lines.filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
}

fn printed(program: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new(program);
    command.args(arguments);
    Step::new("manual", command).output()
}

fn write(file: &str, text: &str) -> Result<(), Failure> {
    let path = root().join(PLACE).join(file);
    let folder = path.parent().unwrap_or(&path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
    written.map_err(|error| Failure::at(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_the_help() {
        let help = "Limits\n\nUsage: x <COMMAND>\n\nCommands:\n  serve  Answers\n         and more\n  \
                    man    Prints\n  help   Print this\n\nOptions:\n  -h\n";
        assert_eq!(commands(help).collect::<Vec<_>>(), ["serve", "man"]);
    }
}
