//! Log lines on the standard error output.

use std::io::{IsTerminal, stderr};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Writes log lines from now on. `filter` is a level, or levels of modules, such as `info,sluicegate_redis=debug`.
pub(crate) fn begin(format: Format, filter: &str) -> Result<(), String> {
    understood(filter)?;
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("--log-level: {error}"))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal());
    match format {
        Format::Text => lines.try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    }
    .map_err(|error| error.to_string())
}

/// A word that is no level would be taken for a module, and every other line would be left out without a word.
fn understood(filter: &str) -> Result<(), String> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let is_understood = |word: &str| {
        let is_level = levels.iter().any(|level| word.eq_ignore_ascii_case(level));
        let is_number = matches!(word.as_bytes(), [b'0'..=b'5']);
        word.is_empty() || is_level || is_number || word.contains(['=', ':', '[', '_'])
    };
    match filter.split(',').map(str::trim).find(|word| !is_understood(word)) {
        None => Ok(()),
        Some(word) => Err(format!(
            "--log-level: `{word}` is not a level: expected off, error, warn, info, debug or trace, or levels of modules \
             such as `info,sluicegate_redis=debug`"
        )),
    }
}
