//! The command `sluicegate`.

mod check;
mod log;
mod policies;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Rate limits for everything that is not written in Rust.
#[derive(Debug, Parser)]
#[command(name = "sluicegate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answers Envoy and HTTP clients by policies in files.
    Serve(Box<serve::Serve>),
    /// Reports what policy files say, and everything that is wrong with them.
    Check(Box<check::Check>),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(serve) => serve::run(*serve).map(|()| ExitCode::SUCCESS),
        Command::Check(check) => Ok(check::run(&check)),
    };
    done.unwrap_or_else(|error| {
        eprintln!("sluicegate: {error}");
        ExitCode::FAILURE
    })
}
