//! The compose file.

use serde_json::Value;
use sluicegate_counterparts::root;

use crate::packaging::program::{assert_serves, python, words};

const FILE: &str = "packaging/docker/compose.yaml";

fn services() -> Value {
    let mut read = python("compose.py", &[FILE], "").unwrap_or_else(|error| panic!("{error}"));
    read["services"].take()
}

#[test]
fn the_compose_file_is_one_by_the_specification() {
    let services = services();
    for name in ["envoy", "sluicegate", "application", "redis"] {
        assert!(services[name]["image"].is_string(), "{services}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("compose.yaml");
    let text = crate::packaging::program::read(FILE);
    for (right, wrong) in [("read_only:", "readonly:"), ("unless-stopped", "perhaps")] {
        std::fs::write(&file, text.replace(right, wrong)).expect("a file");
        let read = python("compose.py", &[file.to_str().expect("a path")], "");
        assert!(read.is_err(), "{wrong} is not found");
    }
}

#[test]
fn every_file_that_the_compose_file_mounts_is_one_that_is_tested() {
    let folder = root().join("packaging/docker");
    let mut mounted = 0;
    for (_, service) in services().as_object().expect("services") {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let (file, _) = volume.as_str().expect("a volume").split_once(':').expect("a file");
            let file = folder.join(file).canonicalize().unwrap_or_else(|_| panic!("no {file}"));
            assert_eq!(file.parent(), Some(root().join("docs/proxies").as_path()));
            mounted += 1;
        }
    }
    assert_eq!(mounted, 2);
    let build = &services()["sluicegate"]["build"];
    let context = folder.join(build["context"].as_str().expect("a folder"));
    assert!(context.join(build["dockerfile"].as_str().expect("a file")).is_file());
}

#[test]
fn the_command_of_the_compose_file_serves() {
    let command = words(&services()["sluicegate"]["command"]);
    assert!(command.contains(&"--redis=redis://redis:6379".to_owned()), "{command:?}");
    let file = root().join("docs/proxies/ratelimit.yaml").display().to_string();
    // Redis need not be there when the server starts.
    let local = |word: String| {
        word.replace("/etc/sluicegate/ratelimit.yaml", &file)
            .replace("//redis:6379", "//127.0.0.1:1")
    };
    assert_serves(&command.into_iter().map(local).collect::<Vec<_>>());
}
