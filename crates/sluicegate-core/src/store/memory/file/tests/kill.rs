//! A process that is killed while it counts and writes, again and again.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const FILE: &str = "SLUICEGATE_TEST_COUNTS";
const LIMIT: Limit = Limit::per_hour(1_000_000_000).burst(1_000_000_000).named("killed");
const ROUNDS: u32 = 100;

/// The most requests of one round, so that a slow parent is not flooded.
const MOST: u64 = 2_000;

#[test]
fn a_process_that_is_killed_forgets_only_what_came_after_its_last_write() {
    if let Some(file) = std::env::var_os(FILE) {
        return run_until_killed(Path::new(&file));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counts");
    // What clients saw admitted in all rounds, and how much of that was certainly written.
    let (mut admitted, mut written, mut starts) = (0, 0, 0);
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().expect("a test program"))
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .arg(format!("{}::{}", module_path!().split_once("::").expect("a crate").1, NAME))
            .env(FILE, &file)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        // How many more requests and writes to wait for before the kill: another moment in each round. A disk may be
        // so slow, or a processor so busy, that all requests come before the first write.
        let mut until = 1 + (round * 37) % 500;
        let mut writes = round % 3;
        for line in lines.map_while(Result::ok) {
            let Some((what, number)) = line.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "spent" => {
                    starts += 1;
                    assert!(number >= written, "round {round}: {number} of {written}");
                    // One may have been admitted without its client being told.
                    assert!(number <= admitted + u64::from(round), "round {round}: {number}");
                    admitted = admitted.max(number);
                    written = number;
                }
                "admitted" => {
                    admitted += 1;
                    until = until.saturating_sub(1);
                }
                "written" => {
                    written = written.max(number);
                    writes = writes.saturating_sub(1);
                }
                _ => {}
            }
            if until == 0 && writes == 0 {
                child.kill().expect("it runs");
                until = u32::MAX;
            }
        }
        child.wait().expect("it was killed");
    }
    assert!(written > 0 && admitted > u64::from(ROUNDS), "{written} of {admitted}");
    assert_eq!(starts, ROUNDS);
}

const NAME: &str = "a_process_that_is_killed_forgets_only_what_came_after_its_last_write";

/// Says what it does on standard output, one line each.
fn run_until_killed(file: &Path) {
    // The machine's clock takes time to start, and no time has to pass.
    let clock = ManualClock::new();
    let builder = Memory::builder().capacity(1_000).clock(&clock).keep_in(file);
    let store = builder.try_build().expect("the file can be read");
    let spent = 1_000_000_000 - remaining(&store, LIMIT, 1);
    // On a line of its own: before it, the harness writes the name of the test without an end.
    say(&format!("\nspent {spent}"));
    let so_far = AtomicU64::new(spent);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                let so_far = so_far.load(Ordering::SeqCst);
                store.flush().expect("it can be written");
                say(&format!("written {so_far}"));
            }
        });
        for _ in 0..MOST {
            assert!(admits(&store, LIMIT, 1));
            so_far.fetch_add(1, Ordering::SeqCst);
            say("admitted 1");
        }
    });
}

/// One call of the system, so that lines of two threads do not mix.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
    said.expect("somebody listens");
}
