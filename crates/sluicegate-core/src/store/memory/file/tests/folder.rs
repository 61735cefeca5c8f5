//! Files on a real disk.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::super::disk::Folder;
use super::super::{INTERVAL, MOST_INTERVAL, pause_after};
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

/// By an operator, or by another program.
#[cfg(unix)]
#[test]
fn a_file_that_is_removed_or_changed_while_the_store_runs_is_written_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    let (other, link) = (folder.path().join("other"), folder.path().join("link"));
    let limit = Limit::per_hour(10);
    let changes: [&dyn Fn() -> std::io::Result<()>; 5] = [
        &|| fs::remove_file(&file),
        &|| fs::write(&file, ""),
        &|| fs::remove_file(&file).and_then(|()| fs::write(&file, "something else")),
        &|| fs::rename(&file, &other),
        // In one step: the store may write at any moment.
        &|| std::os::unix::fs::symlink(&other, &link).and_then(|()| fs::rename(&link, &file)),
    ];
    for (key, change) in (0..).zip(changes) {
        for is_last in [false, true] {
            let store = build(&file, &clock).expect("it can be written");
            assert!(admits(&store, limit, key));
            store.flush().expect("it can be written");
            change().expect("a change");
            assert!(is_last || admits(&store, limit, key));
        }
        let store = build(&file, &clock).expect("it can be read");
        assert_eq!(remaining(&store, limit, key), 7, "change {key}");
    }
    assert!(!folder.path().join("counts.bad").exists());
}

/// On a full disk, it would take the space that the next file needs.
#[test]
fn a_new_file_that_cannot_be_finished_is_removed_and_tried_again_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    let builder = Memory::builder().capacity(100).clock(&clock);
    let disk = Folder::open(file.clone()).expect("a folder");
    let (inner, mut writer, _) = open(&builder, disk).expect("a store");
    fs::remove_file(&file).expect("the file");
    // What is begun cannot take this place.
    fs::create_dir(&file).expect("a folder in its place");
    let error = writer.write(&inner).expect_err("no place");
    assert!(!folder.path().join("counts.new").exists(), "{error}");
    assert_eq!(pause_after(&Err(error)), MOST_INTERVAL);
    assert_eq!(pause_after(&Ok(Duration::ZERO)), INTERVAL);
    fs::remove_dir(&file).expect("the folder");
    writer.write(&inner).expect("a file");
    assert!(file.is_file());
}

#[cfg(unix)]
#[test]
fn two_stores_do_not_write_one_file_after_its_lock_was_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    let lock = folder.path().join("counts.lock");
    let limit = Limit::per_hour(10);
    let first = build(&file, &clock).expect("it can be written");
    fs::remove_file(&lock).expect("a lock");
    first.flush().expect("nobody else has it");
    assert_eq!(build(&file, &clock).expect_err("locked again").kind(), ErrorKind::WouldBlock);
    fs::remove_file(&lock).expect("a lock");
    // Unless the first was quicker, and has locked it again.
    let Ok(second) = build(&file, &clock) else { return };
    assert!(admits(&first, limit, 1) && admits(&second, limit, 2));
    assert_eq!(first.flush().expect_err("the second has it").kind(), ErrorKind::WouldBlock);
    second.flush().expect("it has it");
    drop((first, second));
    let store = build(&file, &clock).expect("it can be read");
    assert_eq!([1, 2].map(|key| remaining(&store, limit, key)), [10, 9]);
}

/// From the fork until it runs its own program, a child has every file of its parent open.
#[cfg(unix)]
#[test]
fn a_child_that_is_being_started_does_not_keep_the_lock_of_a_dropped_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counts");
    let first = Folder::open(file.clone()).expect("nobody else has it");
    let in_child = first.lock.try_clone().expect("a second descriptor");
    drop(first);
    let second = Folder::open(file).expect("the first gave it back");
    drop((in_child, second));
}

#[cfg(unix)]
#[test]
fn a_link_is_another_name_of_the_file_and_no_second_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    let link = folder.path().join("link");
    // Relative, and to what is not there yet.
    std::os::unix::fs::symlink("counts", &link).expect("a link");
    let limit = Limit::per_hour(10);
    let store = build(&link, &clock).expect("it can be written");
    assert!(admits(&store, limit, 1));
    assert_eq!(build(&file, &clock).expect_err("locked").kind(), ErrorKind::WouldBlock);
    drop(store);
    let store = build(&file, &clock).expect("it can be read");
    assert!(admits(&store, limit, 1));
    assert_eq!(build(&link, &clock).expect_err("locked").kind(), ErrorKind::WouldBlock);
    drop(store);
    assert_eq!(remaining(&build(&link, &clock).expect("it can be read"), limit, 1), 8);
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
}

/// As root, `--state /dev/null` must not move that device aside. Nothing is written into a pipe, so it is never read.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_an_error_at_the_start_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let (socket, clock) = (folder.path().join("counts"), ManualClock::new());
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let error = build(&socket, &clock).expect_err("it is a socket");
    let expected = "it is a device, a pipe or a socket, expected a file";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(socket.exists() && !folder.path().join("counts.bad").exists());
    assert!(build(Path::new("/dev/null"), &clock).is_err());
}

#[test]
fn a_damaged_file_that_cannot_be_moved_is_an_error_that_says_where() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, clock) = (folder.path().join("counts"), ManualClock::new());
    fs::write(&file, "counts").expect("a file");
    fs::create_dir(folder.path().join("counts.bad")).expect("a folder");
    let error = build(&file, &clock).expect_err("there is a folder").to_string();
    assert!(error.contains("it cannot be read, nor moved aside to "), "{error}");
    assert!(error.contains("counts.bad: "), "{error}");
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
