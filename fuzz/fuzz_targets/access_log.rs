//! Any bytes are read as a log in any format, plain or compressed, without a panic, and its requests come in order of time:
//! `cargo fuzz run access_log`.
//!
//! The first line says which format: its name, a format string of a server, or nothing, if it has to be guessed.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the command uses more of these modules")]

// The readers are a part of the command, and no library.
#[path = "../../crates/sluicegate-server/src/bin/sluicegate/log/mod.rs"]
mod log;
#[path = "../../crates/sluicegate-server/src/bin/sluicegate/terminal.rs"]
mod terminal;

use std::fs;

use clap::Parser;
use libfuzzer_sys::fuzz_target;

use crate::log::LogFiles;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    logs: LogFiles,
}

fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let (format, text) = (String::from_utf8_lossy(&bytes[..end]), &bytes[end + 1..]);
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), text).expect("a file");
    let path = file.path().to_str().expect("a path");
    let format = format!("--format={format}");
    let fields = "--fields=a.b=request_time_ms,key=http_x_api_key";
    let options = [fields, &format].into_iter().take(1 + usize::from(end > 0));
    let cli = Cli::parse_from(["log", path].into_iter().chain(options));
    let Ok(mut records) = cli.logs.open() else { return };
    let (mut last, mut count) = (i64::MIN, 0);
    while let Ok(Some(record)) = records.next() {
        assert!(record.start >= last);
        last = record.start;
        count += 1;
        let view = record.view();
        let _ = (record.method, record.path, record.query, record.host, record.header("x-api-key"));
        drop(view);
    }
    assert!(count <= records.summary().lines);
});
