//! What the dashboard shows.

use std::collections::BTreeMap;

use sluicegate_core::observe::Watch;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_server::admin::metrics::Metrics;
use sluicegate_server::status::{Capacity, Client, Keys, PolicyStatus, Rate, Resource, Status};
use sluicegate_server::{Policies, Server, Service};

use super::http::{post, send};

/// How long the counters may take to be read.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

const RULES: &str = "[[rules]]\nname = \"shown\"\nkey = \"ip\"\nlimits = [\"2/minute\"]\n";

/// Every request is charged to both, and counted once.
const TWICE: &str = "[[rules]]\nname = \"shown\"\nkey = \"ip\"\nlimits = [\"2/minute\"]\n\
    [[rules]]\nname = \"all\"\nkey = \"global\"\nwhen = { path = \"/\" }\nlimits = [\"1000/minute\"]\n";

/// A file of Envoy's rate limit service.
const EDGE: &str =
    "domain: edge\ndescriptors:\n- key: user\n  rate_limit: { unit: day, requests_per_unit: 7 }\n";

pub(crate) async fn status(address: &str) -> Status {
    let request =
        format!("GET /v1/status HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let (status, _, body) = send(address, &request).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).expect("a status")
}

/// The status, as soon as it is what the test expects.
async fn until(admin: &str, expected: impl Fn(&Status) -> bool) -> Status {
    let mut last = None;
    let shown = tokio::time::timeout(PATIENCE, async {
        loop {
            let shown = last.insert(status(admin).await);
            if expected(shown) {
                break;
            }
            tokio::task::yield_now().await;
        }
    });
    assert!(shown.await.is_ok(), "the counters are not read: {last:?}");
    last.expect("a status")
}

#[tokio::test]
async fn decisions_refused_keys_and_changed_files_are_shown() {
    let _alone = super::DECIDES.lock().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.toml");
    std::fs::write(&file, TWICE).expect("a file");
    // The only test of this program that installs the recorder, which is one for each process.
    let metrics = Metrics::install().expect("no recorder");
    let domain = directory.path().join("edge.yaml");
    std::fs::write(&domain, EDGE).expect("a file");
    let policies = Policies::new().envoy(&domain).and_then(|policies| policies.rules(&file));
    let policies = policies.unwrap_or_else(|error| panic!("{error}"));
    let watch = Watch::new(8).redacted(b"secret");
    let store = Memory::builder().clock(ManualClock::new()).build();
    let service = Service::builder(policies).store(store).watch(&watch).build().expect("a service");
    service.show_capacity(|| {
        let client = Client { client: "envoy-1".to_owned(), wants: 60.0, granted: 40.0 };
        let resource = "edge".to_owned();
        let resource = Resource { resource, clients: vec![client], ..Resource::default() };
        Capacity { resources: vec![resource], ..Capacity::default() }
    });
    let any = "127.0.0.1:0".parse().expect("an address");
    let server = Server::new(service).http(any).admin(any).metrics(&metrics);
    let bound = server.bind().await.expect("free ports");
    let (http, admin) = (bound.addresses().http, bound.addresses().admin);
    let (http, admin) = (http.expect("a port").to_string(), admin.expect("a port").to_string());
    tokio::spawn(bound.run(std::future::pending()));

    for (ip, expected) in
        [("192.0.2.7", 200), ("192.0.2.7", 200), ("192.0.2.7", 429), ("192.0.2.8", 200)]
    {
        let request = format!("{{\"path\":\"/\",\"ip\":{ip:?}}}");
        assert_eq!(post(&http, "/v1/take", &request).await.0, expected);
    }
    // The counters are read once a second, which may be between two of these requests.
    let total = |of: &BTreeMap<String, Rate>| of.values().map(|rate| rate.total).sum::<u64>();
    let shown = until(&admin, |shown| {
        let counted = |name: &str, verdict| {
            let policy = shown.policies.iter().find(|policy| policy.policy == name);
            policy.and_then(|policy| policy.verdicts.get(verdict)).map_or(0, |rate| rate.total)
        };
        let policies =
            counted("shown", "admitted") + counted("shown", "refused") + counted("all", "admitted");
        (policies, total(&shown.requests)) == (7, 4)
    });
    let shown = shown.await;
    let policy = shown.policies.iter().find(|policy| policy.policy == "shown");
    let policy = policy.expect("the policy");
    assert_eq!((policy.verdicts["admitted"].total, policy.verdicts["refused"].total), (3, 1));
    assert_eq!((shown.requests["served"].total, shown.requests["refused"].total), (3, 1));
    assert_eq!(shown.requests["failed"].total, 0);
    let all = shown.policies.iter().find(|policy| policy.policy == "all").expect("the policy");
    assert_eq!(all.verdicts["admitted"].total, 3);
    assert_eq!(policy.limits, ["2/minute named \"shown\" carried"]);
    assert!(policy.rule.starts_with("by ") && !policy.rule.contains("where"), "{}", policy.rule);
    assert!(all.rule.contains("where") && all.rule.contains('/'), "{}", all.rule);
    assert!(shown.counting);
    assert_eq!((shown.store.kind.as_str(), shown.store.keys), ("memory", Some(3)));
    assert_eq!((shown.keys, shown.refused[0].keys.len()), (Keys::Digests, 1));
    assert_eq!(shown.refused[0].keys[0].at_least, 1);
    let text = serde_json::to_string(&shown).expect("text");
    assert!(shown.refused[0].keys[0].who.starts_with('$') && !text.contains("192.0.2"), "{text}");
    assert!(shown.in_force.contains(&"  2/minute named \"shown\" carried".to_owned()));
    assert_eq!(shown.capacity.resources[0].clients[0].granted, 40.0);
    assert_eq!((shown.pending[0].changes.len(), shown.pending[0].problems.len()), (0, 0));

    // What Envoy's files and messages say stands beside their policies, too.
    for limit in ["", ",\"limit\":{\"requestsPerUnit\":9,\"unit\":\"HOUR\"}"] {
        let entries = "\"entries\":[{\"key\":\"user\",\"value\":\"a\"}]";
        let request = format!("{{\"domain\":\"edge\",\"descriptors\":[{{{entries}{limit}}}]}}");
        assert_eq!(post(&http, "/json", &request).await.0, 200);
    }
    let is_of_file = |policy: &&PolicyStatus| policy.rule.contains("\"edge\"");
    let is_of_message = |policy: &&PolicyStatus| policy.policy == "request";
    // Others may be there, too: the recorder is that of all tests of this process.
    let shown = until(&admin, |Status { policies, .. }| {
        policies.iter().any(|policy| is_of_file(&policy))
            && policies.iter().any(|policy| is_of_message(&policy))
    });
    let policies = shown.await.policies;
    let of_file = policies.iter().find(is_of_file).expect("one");
    assert_eq!(of_file.limits, ["7 per day"]);
    let of_message = policies.iter().find(is_of_message).expect("one");
    assert!(of_message.rule.contains("bring along"), "{of_message:?}");
}

#[tokio::test]
async fn what_a_reload_would_change_is_shown_with_lines_and_columns() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = directory.path().join("edge.yaml");
    let text = "domain: edge\ndescriptors:\n- key: user\n  rate_limit: { unit: day, requests_per_unit: 1 }\n";
    std::fs::write(&domain, text).expect("a file");
    let rules = directory.path().join("rules.toml");
    std::fs::write(&rules, RULES).expect("a file");
    let policies = Policies::new().envoy(&domain).and_then(|policies| policies.rules(&rules));
    let service = Service::builder(policies.expect("valid")).build().expect("a service");
    std::fs::write(&domain, text.replace("day", "hour")).expect("a file");
    std::fs::write(&rules, RULES.replace("minute", "fortnight")).expect("a file");
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).admin(any).bind().await.expect("a port");
    let admin = bound.addresses().admin.expect("a port").to_string();
    tokio::spawn(bound.run(std::future::pending()));
    let shown = status(&admin).await;
    assert!(shown.pending[0].problems[0].contains("rules.toml:4:"), "{:?}", shown.pending);
    let changes = &shown.pending[1].changes;
    assert!(changes.len() == 1 && changes[0].contains("edge"), "{changes:?}");
    assert!(!shown.counting && shown.keys == Keys::Unknown);
    // Nothing has come into force.
    assert!(shown.in_force.iter().any(|line| line.contains("1 per day")), "{:?}", shown.in_force);
}
