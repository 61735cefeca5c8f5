//! The watcher, on real files.

use std::fs;
#[cfg(target_os = "linux")]
use std::io::Write;
use std::path::PathBuf;
#[cfg(unix)]
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use super::{Place, admits, everybody, in_force, policies};
use crate::live::{Event, Follow, Live, Snapshot, Watching};

/// Longer than any machine is busy; nothing waits that long unless the test fails.
const AT_MOST: Duration = Duration::from_secs(30);

struct Watched {
    place: Place,
    live: Live,
    events: Receiver<Event>,
    watching: Watching,
}

impl Watched {
    fn of(place: Place) -> Self {
        let live = place.open();
        let (send, events) = channel();
        live.on_event(move |event| send.send(event.clone()).expect("the test is there"));
        let watching = live.watch().expect("a directory that can be watched");
        Self { place, live, events, watching }
    }

    fn event(&self) -> Event {
        self.events.recv_timeout(AT_MOST).expect("an event, as the file has changed")
    }

    /// Waits for policies with that count. A file that is written in place may be read half-written before.
    fn wait_for(&self, count: u64) {
        while !admits(&self.live, count) {
            let event = self.event();
            assert!(!matches!(event, Event::Unwatched(_)), "{event}");
        }
    }
}

#[test]
fn a_file_that_is_written_in_place_is_reloaded() {
    let watched = Watched::of(Place::with(&everybody(10)));
    watched.place.write(&everybody(20));
    watched.wait_for(20);
    watched.place.write(&everybody(30));
    watched.wait_for(30);
}

#[test]
fn a_file_that_another_is_renamed_to_is_reloaded_and_what_changed_is_told() {
    let watched = Watched::of(Place::with(&everybody(10)));
    watched.place.exchange(&everybody(20));
    let Event::Reloaded(changes) = watched.event() else { panic!("not reloaded") };
    assert_eq!(changes.changed, ["all"]);
    assert!(admits(&watched.live, 20));
    let text = changes.to_string();
    assert!(text.contains("all: 10/minute") && text.contains("-> 20/minute"), "{text}");
}

#[test]
fn a_broken_file_keeps_the_old_one_serving_until_it_is_mended() {
    let watched = Watched::of(Place::with(&everybody(10)));
    watched
        .place
        .exchange("[[rules]]\nname = \"all\"\nkey = \"global\"\nlimits = [\"10/fortnight\"]");
    let Event::Refused(problems) = watched.event() else { panic!("not refused") };
    let text = problems.to_string();
    assert!(text.contains("policies.toml:4:") && text.contains("unit"), "{text}");
    assert!(admits(&watched.live, 10));
    watched.place.exchange(&everybody(20));
    assert!(matches!(watched.event(), Event::Reloaded(_)));
    assert!(admits(&watched.live, 20));
}

#[test]
fn a_file_that_is_gone_is_told_and_the_old_policies_serve_on() {
    let watched = Watched::of(Place::with(&everybody(10)));
    fs::remove_file(watched.place.file()).expect("a file");
    let Event::Missing(path) = watched.event() else { panic!("not missing") };
    assert_eq!(path, watched.place.file());
    assert!(admits(&watched.live, 10));
    watched.place.exchange(&everybody(20));
    assert!(matches!(watched.event(), Event::Reloaded(_)));
    assert!(admits(&watched.live, 20));
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_far_above_that_another_is_renamed_to_is_noticed() {
    let place = Place::empty();
    let file_in = |name: &str| place.at(name).join("b/c/policies.toml");
    for (name, count) in [("one", 10), ("other", 20), ("third", 30)] {
        fs::create_dir_all(file_in(name).parent().expect("a directory")).expect("directories");
        fs::write(file_in(name), everybody(count)).expect("a file");
    }
    let live = Live::open(file_in("one"), crate::Environment::new()).expect("valid policies");
    let (send, events) = channel();
    live.on_event(move |event| send.send(event.clone()).expect("the test is there"));
    let watching = live.watch().expect("a directory that can be watched");
    let watched = Watched { place, live, events, watching };
    for (name, count) in [("other", 20), ("third", 30)] {
        let old = watched.place.at(&format!("before {name}"));
        fs::rename(watched.place.at("one"), old).expect("renamed");
        fs::rename(watched.place.at(name), watched.place.at("one")).expect("renamed");
        // Between the two, there is no directory to be watched.
        while !admits(&watched.live, count) {
            watched.event();
        }
    }
}

#[test]
fn a_directory_that_is_made_anew_is_watched_again() {
    let place = Place::empty();
    let inner = place.at("inner");
    let file = inner.join("policies.toml");
    fs::create_dir(&inner).expect("a directory");
    fs::write(&file, everybody(10)).expect("a file");
    let live = Live::open(&file, crate::Environment::new()).expect("valid policies");
    let (send, events) = channel();
    live.on_event(move |event| send.send(event.clone()).expect("the test is there"));
    let watching = live.watch().expect("a directory that can be watched");
    fs::remove_dir_all(&inner).expect("a directory");
    let watched = Watched { place, live, events, watching };
    while !matches!(watched.event(), Event::Missing(_)) {}
    fs::create_dir(&inner).expect("a directory");
    fs::write(&file, everybody(20)).expect("a file");
    while !admits(&watched.live, 20) {
        watched.event();
    }
    // That it is not only looked at now and then.
    fs::write(&file, everybody(30)).expect("a file");
    watched.wait_for(30);
}

#[cfg(unix)]
#[test]
fn a_mounted_config_map_is_reloaded_when_its_directory_is_exchanged() {
    let place = Place::empty();
    place.version("..2026_01", 10);
    place.link("..2026_01", "..data");
    place.link("..data/policies.toml", "policies.toml");
    let Watched { place, live, events, watching } = Watched::of(place);

    // As the kubelet does it.
    place.version("..2026_02", 20);
    place.link("..2026_02", "..data_tmp");
    fs::rename(place.at("..data_tmp"), place.at("..data")).expect("another name");
    fs::remove_dir_all(place.at("..2026_01")).expect("a directory");
    let watched = Watched { place, live, events, watching };
    assert!(matches!(watched.event(), Event::Reloaded(_)));
    assert!(admits(&watched.live, 20));
}

#[cfg(unix)]
#[test]
fn a_file_behind_a_link_is_watched_where_it_is() {
    let place = Place::empty();
    place.version("elsewhere", 10);
    place.link("elsewhere/policies.toml", "policies.toml");
    let watched = Watched::of(place);
    fs::write(watched.place.at("elsewhere/policies.toml"), everybody(20)).expect("a file");
    watched.wait_for(20);
}

#[test]
fn nothing_is_watched_once_the_guard_is_dropped() {
    let Watched { place, live, watching, events } = Watched::of(Place::with(&everybody(10)));
    drop(watching);
    place.exchange(&everybody(20));
    // The thread has ended, so no other thread uses the policies.
    assert_eq!(Arc::strong_count(&live.shared), 1);
    assert!(admits(&live, 10));
    assert!(events.try_recv().is_err());
    live.reload().expect("valid policies");
    assert!(admits(&live, 20));
}

#[test]
fn a_listener_may_drop_the_guard() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    let guard = Arc::new(Mutex::new(None));
    let (send, events) = channel();
    let held = Arc::clone(&guard);
    live.on_event(move |event| {
        drop(held.lock().expect("nobody panics").take());
        send.send(event.clone()).expect("the test is there");
    });
    *guard.lock().expect("nobody panics") = Some(live.watch().expect("a directory"));
    place.exchange(&everybody(20));
    events.recv_timeout(AT_MOST).expect("an event, as the file has changed");
    assert!(guard.lock().expect("nobody panics").is_none());
}

#[test]
fn policies_that_code_made_cannot_be_watched() {
    let live = Live::of(policies(&everybody(10)));
    let error = live.watch().expect_err("no file");
    assert_eq!(error.to_string(), "these policies were not read from a file");
}

#[test]
fn a_listener_that_panics_does_not_end_the_watching() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    let (send, events) = channel();
    live.on_event(move |event| {
        send.send(event.clone()).expect("the test is there");
        panic!("a listener that panics");
    });
    let _watching = live.watch().expect("a directory that can be watched");
    for count in [20, 30] {
        place.exchange(&everybody(count));
        let event = events.recv_timeout(AT_MOST).expect("an event, as the file has changed");
        assert!(matches!(event, Event::Reloaded(_)), "{event}");
        assert!(admits(&live, count));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_changes_by_another_name_is_reloaded() {
    // As for a file that is mounted alone: its directory gets no event.
    let place = Place::with(&everybody(10));
    let elsewhere = place.at("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    fs::hard_link(place.file(), elsewhere.join("other")).expect("a link");
    let watched = Watched::of(place);
    for count in [20, 30] {
        fs::write(elsewhere.join("other"), everybody(count)).expect("a file");
        watched.wait_for(count);
    }
}

/// Two rules, and where the second begins.
fn two_rules() -> (String, usize) {
    let first = everybody(20);
    (format!("{first}{}", everybody(30).replace("all", "second")), first.len())
}

#[test]
fn a_text_is_put_in_force_once_it_is_found_twice() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    let (whole, half) = two_rules();
    let mut snapshot = None;
    let mut look = || live.look(&mut snapshot);
    place.write(&whole[..half]);
    look();
    assert!(admits(&live, 10));
    place.write(&whole);
    look();
    assert!(admits(&live, 10));
    look();
    assert_eq!(in_force(&live).len(), 2);
    // A file that changes all the time is put in force in the end.
    for count in 100..200 {
        place.write(&everybody(count));
        look();
    }
    assert!(!in_force(&live)[0].starts_with("20/"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_pauses_in_the_middle_of_a_file_is_waited_for() {
    let watched = Watched::of(Place::with(&everybody(10)));
    let (whole, half) = two_rules();
    let mut file = fs::File::create(watched.place.file()).expect("a file");
    file.write_all(&whole.as_bytes()[..half]).expect("room on the disk");
    // Meanwhile, another file in another directory is reloaded twice, which takes longer than reading this one twice.
    let other = Watched::of(Place::with(&everybody(1)));
    for count in [2, 3] {
        other.place.exchange(&everybody(count));
        other.wait_for(count);
    }
    assert!(admits(&watched.live, 10));
    file.write_all(&whole.as_bytes()[half..]).expect("room on the disk");
    drop(file);
    let Event::Reloaded(_) = watched.event() else { panic!("not reloaded") };
    assert_eq!(in_force(&watched.live).len(), 2);
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_the_file_stops_nobody() {
    let watched = Watched::of(Place::with(&everybody(10)));
    for made in ["mkfifo", "mkdir"] {
        let other = watched.place.at("other");
        assert!(Command::new(made).arg(&other).status().expect(made).success());
        fs::remove_file(watched.place.file()).expect("a file");
        fs::rename(&other, watched.place.file()).expect("another name");
        let event = watched.event();
        let event = if matches!(event, Event::Missing(_)) { watched.event() } else { event };
        let Event::Refused(problems) = event else { panic!("{event}") };
        assert!(problems.to_string().contains("expected a file"), "{problems}");
        assert!(admits(&watched.live, 10));
        let taken = watched.place.at(&format!("{made}-was-here"));
        fs::rename(watched.place.file(), taken).expect("another name");
        watched.place.exchange(&everybody(10));
        while !matches!(watched.event(), Event::Reloaded(_)) {}
    }
}

/// What is followed leads to a directory that is gone, as often as given, after the first time.
struct Exchanged {
    there: PathBuf,
    gone: AtomicU32,
    begun: AtomicBool,
    told: Sender<Option<String>>,
}

impl Follow for Exchanged {
    type Found = ();

    fn paths(&self) -> Vec<PathBuf> {
        let is_first = !self.begun.swap(true, Ordering::Relaxed);
        let fewer = |gone: u32| gone.checked_sub(1);
        let is_gone =
            || self.gone.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok();
        let name = if !is_first && is_gone() { "gone/file" } else { "file" };
        vec![self.there.join(name)]
    }

    fn look(&self, _: &mut Option<Snapshot<()>>) -> bool {
        self.told.send(None).expect("the test is there");
        true
    }

    fn unwatched(&self, reason: String) {
        self.told.send(Some(reason)).expect("the test is there");
    }
}

#[test]
fn a_directory_that_is_exchanged_meanwhile_is_no_failure() {
    for (gone, is_failure) in [(0, false), (1, false), (2, true)] {
        let directory = TempDir::new().expect("a directory");
        let (told, events) = channel();
        let there = directory.path().to_owned();
        let (gone, begun) = (AtomicU32::new(gone), AtomicBool::new(false));
        let watching = Watching::begin(Exchanged { there, gone, begun, told });
        let first = events.recv_timeout(AT_MOST).expect("a look, or a failure");
        assert_eq!(first.is_some(), is_failure, "{first:?}");
        drop(watching.expect("a directory that can be watched"));
    }
}
