//! What a package installs beside the program: completions for shells, and manual pages.

use std::error::Error;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::terminal::print as write;

/// Prints completions for a shell.
///
/// For bash, try `source <(sluicegate completions bash)`. The Debian package installs them for bash, zsh and fish.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints a manual page.
///
/// Try `sluicegate man serve | man -l -`. The Debian package installs all pages.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The command to describe, such as `serve`. Without one, the page lists all commands.
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Prints completions for every command and option.
pub(crate) fn complete(options: &Completions, mut cli: Command) -> Result<(), Box<dyn Error>> {
    let mut written = Vec::new();
    clap_complete::generate(options.shell, &mut cli, "sluicegate", &mut written);
    Ok(write(&written)?)
}

/// Prints the page of `sluicegate`, or of one of its commands.
pub(crate) fn print(options: &Man, mut cli: Command) -> Result<(), Box<dyn Error>> {
    cli.build();
    let described = match &options.command {
        None => cli,
        Some(name) => of(name, &cli)?,
    };
    let mut written = Vec::new();
    clap_mangen::Man::new(described).manual("User Commands").render(&mut written)?;
    Ok(write(&written)?)
}

/// The command of this name, called as its page is: `sluicegate-serve`.
fn of(name: &str, cli: &Command) -> Result<Command, String> {
    let command = cli.find_subcommand(name).cloned().ok_or_else(|| {
        let names: Vec<_> = cli.get_subcommands().map(Command::get_name).collect();
        format!("there is no command `{name}`, expected one of: {}", names.join(", "))
    })?;
    Ok(command.display_name(format!("sluicegate-{name}")).version(env!("CARGO_PKG_VERSION")))
}
