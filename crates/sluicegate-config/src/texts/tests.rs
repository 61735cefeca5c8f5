use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::{Found, MOST, Texts};

const ENDINGS: &[&str] = &["yaml", "yml"];

fn texts(paths: &[PathBuf]) -> Texts {
    let mut texts = Texts::new(ENDINGS);
    paths.iter().for_each(|path| texts.add(path));
    texts
}

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}

/// The name of each file with its text, or with why it cannot be read.
fn told(found: &Found) -> Vec<(String, String)> {
    let told = found.iter().map(|(path, text)| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, text.clone().unwrap_or_else(|why| format!("error: {why}")))
    });
    told.collect()
}

fn pair(name: &str, text: &str) -> (String, String) {
    (name.to_owned(), text.to_owned())
}

#[test]
fn the_files_of_a_directory_are_those_with_an_ending_that_are_not_hidden() {
    let place = directory(&[
        ("b.yaml", "two"),
        ("a.yml", "one"),
        ("c.toml", "no"),
        (".d.yaml", "no"),
        ("yaml", "no"),
    ]);
    fs::create_dir(place.path().join("e.yaml")).expect("a directory");
    let found = texts(&[place.path().to_owned()]).read();
    assert_eq!(told(&found), [pair("a.yml", "one"), pair("b.yaml", "two")]);
}

#[test]
fn a_file_that_is_named_counts_whatever_its_ending_and_counts_once() {
    let place = directory(&[("limits", "text"), ("a.yaml", "one")]);
    let file = place.path().join("a.yaml");
    let found = texts(&[place.path().join("limits"), file, place.path().to_owned()]).read();
    assert_eq!(told(&found), [pair("a.yaml", "one"), pair("limits", "text")]);
}

#[test]
fn what_cannot_be_read_is_told_by_its_path() {
    let place = directory(&[]);
    let found = texts(&[place.path().to_owned(), place.path().join("absent.yaml")]).read();
    let told: Vec<_> = told(&found).into_iter().map(|(_, why)| why).collect();
    assert_eq!(
        told,
        [
            "error: the directory has no file that ends in .yaml or .yml",
            "error: there is no such file"
        ]
    );
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_told_and_not_left_out() {
    let place = directory(&[("a.yaml", "one")]);
    std::os::unix::fs::symlink("gone", place.path().join("b.yaml")).expect("a link");
    let found = texts(&[place.path().to_owned()]).read();
    let told = told(&found);
    assert_eq!(told[1], pair("b.yaml", "error: there is no such file"));
}

#[test]
fn very_many_files_are_an_error() {
    let place = directory(&[]);
    for file in 0..=MOST {
        fs::write(place.path().join(format!("{file}.yaml")), "").expect("a file");
    }
    let found = texts(&[place.path().to_owned()]).read();
    let why = found[place.path()].as_ref().expect_err("too many");
    assert!(why.contains("more than 4096 files"), "{why}");
}

#[cfg(all(feature = "watch", target_os = "linux"))]
mod watching {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::texts::Follower;

    /// Longer than any machine is busy.
    const AT_MOST: Duration = Duration::from_secs(30);

    /// Longer than a change takes to be told.
    const QUIET: Duration = Duration::from_millis(700);

    struct Last(Mutex<Found>, Sender<Found>);

    impl Follower for Last {
        fn knows(&self, found: &Found) -> bool {
            *self.0.lock().expect("no panic") == *found
        }

        fn changed(&self, found: Found) {
            *self.0.lock().expect("no panic") = found.clone();
            let _ = self.1.send(found);
        }

        fn unwatched(&self, reason: &str) {
            panic!("{reason}");
        }
    }

    fn watch(texts: &Texts) -> (crate::Watching, Receiver<Found>) {
        let (send, changes) = channel();
        let last = Arc::new(Last(Mutex::new(texts.read()), send));
        (texts.watch(last).expect("a directory that can be watched"), changes)
    }

    /// The one change whose files can all be read. Between two steps of a program that waits for the processor, a link may
    /// lead nowhere.
    fn only(changes: &Receiver<Found>) -> Vec<(String, String)> {
        let next = || changes.recv_timeout(AT_MOST).expect("a change");
        let change = std::iter::repeat_with(next)
            .find(|found| found.values().all(Result::is_ok))
            .expect("a change without an end");
        let more = changes.recv_timeout(QUIET);
        assert!(more.is_err(), "{more:?}");
        told(&change)
    }

    #[test]
    fn files_that_come_change_and_go_are_told() {
        let place = directory(&[("a.yaml", "one")]);
        let (_watching, changes) = watch(&texts(&[place.path().to_owned()]));
        // Complete at once, however long the processor is away.
        fs::write(place.path().join("b.new"), "two").expect("a file");
        fs::rename(place.path().join("b.new"), place.path().join("b.yaml")).expect("a file");
        assert_eq!(only(&changes), [pair("a.yaml", "one"), pair("b.yaml", "two")]);
        fs::write(place.path().join("a.yaml"), "three").expect("a file");
        assert_eq!(only(&changes), [pair("a.yaml", "three"), pair("b.yaml", "two")]);
        fs::remove_file(place.path().join("a.yaml")).expect("a file");
        assert_eq!(only(&changes), [pair("b.yaml", "two")]);
        fs::write(place.path().join("c.toml"), "other").expect("a file");
        assert!(changes.recv_timeout(QUIET).is_err());
    }

    /// As the kubelet does: a directory for each version, a link to it that is exchanged, and a link for each file.
    #[test]
    fn a_config_map_that_is_exchanged_is_told_once_and_whole() {
        let place = directory(&[]);
        let at = |name: &str| place.path().join(name);
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, at("..new")).expect("a link");
            fs::rename(at("..new"), at(name)).expect("a link");
        };
        let version = |name: &str, files: &[(&str, &str)]| {
            fs::create_dir(at(name)).expect("a directory");
            for (file, text) in files {
                fs::write(at(name).join(file), text).expect("a file");
            }
            link(name, "..data");
        };
        version("..1", &[("a.yaml", "one"), ("b.yaml", "two")]);
        link("..data/a.yaml", "a.yaml");
        link("..data/b.yaml", "b.yaml");
        let (_watching, changes) = watch(&texts(&[place.path().to_owned()]));
        assert!(changes.recv_timeout(QUIET).is_err());

        version("..2", &[("a.yaml", "three"), ("c.yaml", "four")]);
        link("..data/c.yaml", "c.yaml");
        fs::remove_file(at("b.yaml")).expect("a link");
        fs::remove_dir_all(at("..1")).expect("a directory");
        assert_eq!(only(&changes), [pair("a.yaml", "three"), pair("c.yaml", "four")]);

        version("..3", &[("a.yaml", "five"), ("c.yaml", "six")]);
        fs::remove_dir_all(at("..2")).expect("a directory");
        assert_eq!(only(&changes), [pair("a.yaml", "five"), pair("c.yaml", "six")]);
    }
}
