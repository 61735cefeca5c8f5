//! The command `sluicegate`.

mod check;
mod health;
mod like;
mod log;
mod manual;
mod masters;
mod page;
mod per_second;
mod policies;
mod proxy;
mod replay;
mod running;
mod series;
mod serve;
mod shared;
mod store;
mod suggest;
mod terminal;
mod test;
#[cfg(test)]
mod testing;
mod top;
mod virtual_time;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Otherwise, threads of a static program wait for each other at the one lock of musl's allocator.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rate limits for everything that is not written in Rust.
///
/// `serve` decides for Envoy, nginx, Caddy and HTTP clients, by policies in files. Try `sluicegate check --rules rules.toml`
/// first, which reports what a file says.
#[derive(Debug, Parser)]
#[command(name = "sluicegate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Each is described at its options.
#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    Check(Box<check::Check>),
    Test(test::Test),
    Replay(replay::Replay),
    Proxy(Box<proxy::Proxy>),
    Health(health::Health),
    Top(top::Top),
    Suggest(suggest::Suggest),
    Completions(manual::Completions),
    Man(manual::Man),
}

fn main() -> ExitCode {
    let arguments = match like::completed(std::env::args_os().collect(), &like::environment) {
        Ok(arguments) => arguments,
        Err(what) => return failed(&what),
    };
    let done = match Cli::parse_from(arguments).command {
        Command::Serve(serve) => serve::run(*serve).map(|()| ExitCode::SUCCESS),
        Command::Proxy(proxy) => proxy::run(*proxy).map(|()| ExitCode::SUCCESS),
        Command::Check(check) => Ok(check::run(&check)),
        Command::Test(test) => test::run(&test),
        Command::Replay(replay) => replay::run(&replay),
        Command::Health(health) => health::run(&health).map(|()| ExitCode::SUCCESS),
        Command::Top(top) => top::run(&top).map(|()| ExitCode::SUCCESS),
        Command::Suggest(suggest) => suggest::run(&suggest).map(|()| ExitCode::SUCCESS),
        Command::Completions(completions) => {
            manual::complete(&completions, Cli::command()).map(|()| ExitCode::SUCCESS)
        }
        Command::Man(man) => manual::print(&man, Cli::command()).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| failed(&error.to_string()))
}

fn failed(what: &str) -> ExitCode {
    eprintln!("sluicegate: {}", terminal::readable(what));
    ExitCode::FAILURE
}
