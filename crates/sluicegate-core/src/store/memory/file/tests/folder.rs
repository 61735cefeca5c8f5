//! Files on a real disk.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::*;

fn build(file: &Path, clock: &ManualClock) -> std::io::Result<Memory> {
    Memory::builder().capacity(100).clock(clock).keep_in(file).try_build()
}

#[test]
fn a_store_goes_on_where_it_was_when_it_was_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    let limit = Limit::per_hour(100);
    for run in 0..10 {
        let store = build(&file, &clock).expect("it can be written");
        assert_eq!(remaining(&store, limit, 1), 100 - run);
        let clone = store.clone();
        drop(store);
        assert!(admits(&clone, limit, 1));
    }
}

#[test]
fn a_flush_is_enough_where_the_store_is_never_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    let store = build(&file, &clock).expect("it can be written");
    assert!(admits(&store, Limit::per_hour(3), 1));
    store.flush().expect("it can be written");
    let copy = folder.path().join("copy");
    fs::copy(&file, &copy).expect("a copy");
    let read = build(&copy, &clock).expect("it can be read");
    assert_eq!(remaining(&read, Limit::per_hour(3), 1), 2);
    // A store that is kept nowhere has nothing to write.
    assert!(Memory::new().flush().is_ok());
}

#[test]
fn a_second_store_on_the_file_is_refused_until_the_first_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    let store = build(&file, &clock).expect("it can be written");
    let error = build(&file, &clock).expect_err("it is locked");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let expected = format!(
        "the file of counts {}: another process, or another store, has it open",
        file.display()
    );
    assert_eq!(error.to_string(), expected);
    drop(store);
    assert!(build(&file, &clock).is_ok());
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = ManualClock::new();
    let error = build(folder.path(), &clock).expect_err("it is a folder");
    assert!(error.to_string().ends_with(": it is a folder, expected a file"), "{error}");
    let missing = folder.path().join("missing/counts");
    let error = build(&missing, &clock).expect_err("there is no such folder");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let builder = Memory::builder().clock(&clock).keep_in(missing);
    assert!(std::panic::catch_unwind(|| builder.build()).is_err());
}

#[test]
fn a_damaged_file_is_moved_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    fs::write(&file, "counts").expect("a file");
    let store = build(&file, &clock).expect("it begins empty");
    assert!(admits(&store, Limit::per_hour(3), 1));
    drop(store);
    assert_eq!(fs::read(folder.path().join("counts.bad")).expect("it was moved"), b"counts");
    let store = build(&file, &clock).expect("it can be read");
    assert_eq!(remaining(&store, Limit::per_hour(3), 1), 2);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    // Left behind by a process that was killed.
    fs::write(folder.path().join("counts.new"), "half").expect("a file");
    drop(build(&file, &clock).expect("it can be written"));
    for name in ["counts", "counts.lock"] {
        let mode = fs::metadata(folder.path().join(name)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(!folder.path().join("counts.new").exists());
}
