//! `sluicegate top`

mod ask;
mod live;

mod report;
mod table;
mod view;

use std::error::Error;
use std::io::{IsTerminal as _, stdin, stdout};
use std::time::Duration;

use clap::Args;

use self::ask::Server;
use crate::shared;
use crate::terminal::print;

/// Shows in a terminal what a running server or proxy does.
///
/// It shows what the dashboard on the admin port shows, and asks that port for it: rates, refused keys, latency, the store,
/// and the policies in force. `q` ends it, arrows scroll.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Its admin port, such as `10.0.0.7:6070` or `http://10.0.0.7:6070`.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6070", aliases = ["admin", "url"])]
    address: String,
    /// The token of the admin port, if it has one.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "SLUICEGATE_ADMIN_TOKEN",
        hide_env_values = true,
        alias = "token"
    )]
    admin_token: Option<String>,
    /// Prints the state once, as text, and ends. This needs no terminal.
    #[arg(long)]
    once: bool,
    /// How often to ask the server, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// How long the server may take to answer, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "5000", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    timeout_ms: u64,
}

/// Shows the state of the server until the user ends it, or once.
pub(crate) fn run(options: &Top) -> Result<(), Box<dyn Error>> {
    let timeout = Duration::from_millis(options.timeout_ms);
    let server =
        Server::new(&options.address, shared::secret(options.admin_token.as_deref())?, timeout)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let done = if options.once {
        once(&runtime, &server)
    } else if stdin().is_terminal() && stdout().is_terminal() {
        live::run(&runtime, server, Duration::from_secs(options.interval)).map_err(Into::into)
    } else {
        Err("top draws on a terminal, and there is none here: use --once to print the state".into())
    };
    // Names may still be resolved.
    runtime.shutdown_background();
    done
}

fn once(runtime: &tokio::runtime::Runtime, server: &Server) -> Result<(), Box<dyn Error>> {
    let status = runtime.block_on(server.status())?;
    let mut text = report::heading(&status);
    text.push('\n');
    for line in report::lines(&status, None) {
        text.push_str(line.text.trim_end());
        text.push('\n');
    }
    Ok(print(text.as_bytes())?)
}
