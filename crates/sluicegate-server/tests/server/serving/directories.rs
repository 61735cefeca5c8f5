//! Directories of files, as operators and Kubernetes change them.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use sluicegate_core::Memory;
use sluicegate_server::{Policies, Reload, Server, Service};
use sluicegate_tests::stores::TestStore;
use tempfile::TempDir;
use tonic::transport::Channel;

use super::server::descriptor;

/// Longer than any machine is busy.
const AT_MOST: Duration = Duration::from_secs(30);

/// Longer than a change takes to come into force.
const QUIET: Duration = Duration::from_millis(700);

struct Place {
    directory: TempDir,
    client: RateLimitServiceClient<Channel>,
    reload: Reload,
    policies: Policies,
}

fn file(domain: &str, count: u32) -> String {
    format!(
        "domain: {domain}\ndescriptors:\n- key: user\n  rate_limit: {{ unit: hour, requests_per_unit: {count} }}\n"
    )
}

async fn start(prepare: impl FnOnce(&Path)) -> Place {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path());
    let policies = Policies::new().envoy(directory.path());
    let policies = policies.unwrap_or_else(|error| panic!("{error}"));
    let service = Service::builder(policies.clone())
        .store(TestStore::keeping(Memory::new(), |limit| limit.count() <= 1_000_000_000));
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service.build().expect("a service")).grpc(any).bind().await;
    let bound = bound.expect("a free port");
    let (reload, address) = (bound.reload(), bound.addresses().grpc.expect("a port"));
    tokio::spawn(bound.run(std::future::pending()));
    let client = RateLimitServiceClient::connect(format!("http://{address}")).await;
    Place { directory, client: client.expect("a connection"), reload, policies }
}

impl Place {
    fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.path().join(name), text).expect("a file");
    }

    /// The limit of a domain, if it has one.
    async fn limit(&mut self, domain: &str) -> Option<u32> {
        let descriptors = vec![descriptor(&[("user", "a")])];
        let domain = domain.to_owned();
        let request = RateLimitRequest { domain, descriptors, hits_addend: 0 };
        let answer = self.client.should_rate_limit(request).await.expect("an answer").into_inner();
        assert_eq!(answer.overall_code(), Code::Ok);
        answer.statuses[0].current_limit.as_ref().map(|limit| limit.requests_per_unit)
    }

    async fn limits(&mut self) -> [Option<u32>; 3] {
        [self.limit("a").await, self.limit("b").await, self.limit("c").await]
    }

    fn events(&self) -> Receiver<String> {
        let (send, events) = channel();
        self.policies.on_event(move |event| {
            let _ = send.send(event.to_owned());
        });
        events
    }
}

#[tokio::test]
async fn a_reload_finds_new_files_and_misses_removed_ones() {
    let mut place = start(|at| {
        fs::write(at.join("a.yaml"), file("a", 100)).expect("a file");
        fs::write(at.join("b.yaml"), file("b", 200)).expect("a file");
    })
    .await;
    assert_eq!(place.limits().await, [Some(100), Some(200), None]);
    place.write("c.yml", &file("c", 300));
    fs::remove_file(place.directory.path().join("b.yaml")).expect("a file");
    place.reload.now().expect("valid files");
    assert_eq!(place.limits().await, [Some(100), None, Some(300)]);
    // A domain may move to another file.
    fs::rename(place.directory.path().join("c.yml"), place.directory.path().join("d.yaml"))
        .expect("a file");
    place.reload.now().expect("valid files");
    assert_eq!(place.limits().await, [Some(100), None, Some(300)]);
}

#[test]
fn files_of_one_domain_are_merged_if_told_so_and_what_both_have_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        fs::write(directory.path().join(name), text).expect("a file");
    };
    let read = |merges| Policies::new().merge_domains(merges).envoy(directory.path());
    let lines = |policies: &Policies| policies.describe().join("\n");
    write("a.yaml", &file("edge", 100));
    write("b.yaml", &file("edge", 200).replace("user", "path"));
    write("c.yaml", &file("edge", 300).replace("key: user", "key: user\n  value: a"));
    write("d.yaml", &file("other", 400));
    assert!(read(false).is_err_and(|error| error.is_of_several_files()));
    let policies = read(true).unwrap_or_else(|error| panic!("{error}"));
    let all = lines(&policies);
    assert_eq!(all.lines().filter(|line| line.contains("edge")).count(), 1, "{all}");
    for limit in ["100 per hour", "200 per hour", "300 per hour", "400 per hour"] {
        assert!(all.contains(limit), "{all}");
    }
    for (twice, said) in [
        (file("edge", 1), "`user` is there already"),
        (
            file("edge", 1).replace("key: user", "key: user\n  value: a"),
            "`user` with the value `a` is there already",
        ),
    ] {
        write("e.yaml", &twice);
        let problems = policies.reload().expect_err("a descriptor that is there twice").to_string();
        assert!(problems.contains("e.yaml") && problems.contains(said), "{problems}");
        assert_eq!(lines(&policies), all);
    }
    write("e.yaml", &file("edge", 500).replace("user", "host"));
    policies.reload().unwrap_or_else(|error| panic!("{error}"));
    assert!(lines(&policies).contains("500 per hour"));
}

#[tokio::test]
async fn a_broken_file_of_a_directory_leaves_all_of_them_as_they_were() {
    let mut place = start(|at| {
        fs::write(at.join("a.yaml"), file("a", 100)).expect("a file");
        fs::write(at.join("b.yaml"), file("b", 200)).expect("a file");
    })
    .await;
    let events = place.events();
    for (broken, said) in [
        (file("b", 0).replace("hour", "fortnight"), "b.yaml:4:23"),
        (String::new(), "b.yaml"),
        (file("a", 1), "a.yaml"),
        (file("b", 4_000_000_000), "b.yaml: the store cannot keep"),
    ] {
        place.write("a.yaml", &file("a", 150));
        place.write("b.yaml", &broken);
        let problem = place.reload.now().expect_err("a broken file").to_string();
        assert!(problem.contains(said), "{problem}");
        assert!(events.recv().expect("an event").contains(said));
        assert_eq!(place.limits().await, [Some(100), Some(200), None]);
    }
    fs::remove_file(place.directory.path().join("b.yaml")).expect("a file");
    fs::remove_file(place.directory.path().join("a.yaml")).expect("a file");
    let problem = place.reload.now().expect_err("an empty directory").to_string();
    assert!(problem.contains(".yaml or .yml"), "{problem}");
    assert_eq!(place.limits().await, [Some(100), Some(200), None]);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_config_map_that_is_exchanged_comes_into_force_once_and_as_a_whole() {
    use std::os::unix::fs::symlink;

    let link = |at: &Path, target: &str, name: &str| {
        symlink(target, at.join("..new")).expect("a link");
        fs::rename(at.join("..new"), at.join(name)).expect("a link");
    };
    let version = move |at: &Path, name: &str, files: &[(&str, u32)]| {
        fs::create_dir(at.join(name)).expect("a directory");
        for (domain, count) in files {
            let path = at.join(name).join(format!("{domain}.yaml"));
            fs::write(path, file(domain, *count)).expect("a file");
        }
        link(at, name, "..data");
    };
    let mut place = start(|at| {
        version(at, "..1", &[("a", 100), ("b", 200)]);
        link(at, "..data/a.yaml", "a.yaml");
        link(at, "..data/b.yaml", "b.yaml");
    })
    .await;
    let _watching = place.policies.watch().expect("a directory that can be watched");
    let events = place.events();
    let at = place.directory.path().to_owned();
    // As the kubelet does.
    version(&at, "..2", &[("a", 150), ("c", 300)]);
    link(&at, "..data/c.yaml", "c.yaml");
    fs::remove_file(at.join("b.yaml")).expect("a link");
    fs::remove_dir_all(at.join("..1")).expect("a directory");
    // Between two steps of a program that waits for the processor, a link leads nowhere, and nothing changes.
    let next = || events.recv_timeout(AT_MOST).expect("an event");
    let has_waited = |event: &String| event.starts_with("policies not reloaded");
    let event = std::iter::repeat_with(next).find(|event| !has_waited(event)).expect("an event");
    for part in ["domain a: ", "domain c: new, 1 limits", "domain b: removed"] {
        assert!(event.starts_with("policies reloaded: ") && event.contains(part), "{event}");
    }
    assert_eq!(place.limits().await, [Some(150), None, Some(300)]);
    let more = events.recv_timeout(QUIET);
    assert!(more.is_err(), "{more:?}");
    // And again, now that the links lead elsewhere.
    version(&at, "..3", &[("a", 160), ("c", 310)]);
    fs::remove_dir_all(at.join("..2")).expect("a directory");
    events.recv_timeout(AT_MOST).expect("an event");
    assert_eq!(place.limits().await, [Some(160), None, Some(310)]);
    assert!(events.recv_timeout(QUIET).is_err());
}

#[tokio::test]
async fn a_reload_that_was_asked_for_beside_a_watch_tells_once() {
    let mut place = start(|at| fs::write(at.join("a.yaml"), file("a", 100)).expect("a file")).await;
    let events = place.events();
    // Written before the watch begins, so that it never finds half of the file. It looks once as it begins.
    place.write("a.yaml", &file("a", 150));
    let _watching = place.policies.watch().expect("a directory that can be watched");
    place.reload.now().expect("valid files");
    assert_eq!(place.limits().await, [Some(150), None, None]);
    assert!(events.recv_timeout(AT_MOST).expect("an event").contains("domain a: "));
    assert!(events.recv_timeout(QUIET).is_err());
}
