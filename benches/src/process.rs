//! Parts of a program in processes of their own, where nothing is resident that another part left.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::process::{Command, Stdio};

/// The argument that runs a part; not a word that chooses tables.
const FLAG: &str = "--part";

/// The part that this process runs, if it was started by [`run`].
pub fn part() -> Option<Vec<String>> {
    let mut arguments = env::args().skip_while(|argument| argument != FLAG);
    arguments.next()?;
    Some(arguments.collect())
}

/// Runs a part of this program in a new process, and returns the numbers that it [`tell`]s.
///
/// # Panics
///
/// When that process cannot be started, or fails.
pub fn run(part: &[&str]) -> HashMap<String, f64> {
    let program = env::current_exe().expect("a running program has a path");
    let started = Command::new(program).arg(FLAG).args(part).stderr(Stdio::inherit()).output();
    let output = started.expect("what runs can be started again");
    assert!(output.status.success(), "{part:?} failed: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("a part tells text");
    let number = |line: &str| {
        let (name, number) = line.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(number).collect()
}

/// Passes a number to the process that started this one.
pub fn tell(name: &str, number: f64) {
    println!("{name} {number}");
}

/// Bytes of this process that are in memory, where the system says: on Linux.
pub fn resident() -> Option<u64> {
    resident_of("self")
}

/// Like [`resident`], but for the process with this id.
pub(crate) fn resident_of(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}
