//! What connections and bodies cost in memory. Each test looks at the memory of the whole process, so one runs at a time,
//! and no others are in this program.
#![cfg(target_os = "linux")]

mod bodies;
mod idle;

use tokio::sync::Mutex;

/// Held by the test that runs.
static PROCESS: Mutex<()> = Mutex::const_new(());

/// A number of `/proc/self/status` in bytes, such as `VmRSS`.
fn memory(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.expect("a number") * 1024
}
