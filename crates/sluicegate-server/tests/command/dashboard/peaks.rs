//! Whom another limit would refuse, as the dashboard shows it.

use sluicegate_core::observe::Watch;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_server::status::PeaksStatus;
use sluicegate_server::{Policies, Server, Service};

use super::http::{post, send};

/// The second rule charges by the response, and the third one counts places.
const RULES: &str = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"fixed 3/minute\"]\n\
    [[rules]]\nname = \"login\"\nkey = \"ip\"\nlimits = [\"50/minute\"]\ncount_if = [401]\n\
    [[rules]]\nname = \"slow\"\nkey = \"ip\"\nlimits = [\"concurrent 100\"]\n";

#[tokio::test]
async fn the_keys_of_each_limit_are_shown_by_what_they_asked_for() {
    let _alone = super::DECIDES.lock().await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.toml");
    std::fs::write(&file, RULES).expect("a file");
    let policies = Policies::new().rules(&file).unwrap_or_else(|error| panic!("{error}"));
    let watch = Watch::new(8).with_peaks(100);
    let store = Memory::builder().clock(ManualClock::new()).build();
    let service = Service::builder(policies).store(store).watch(&watch).build().expect("a service");
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = Server::new(service).http(any).admin(any).bind().await.expect("free ports");
    let (http, admin) = (bound.addresses().http, bound.addresses().admin);
    let (http, admin) = (http.expect("a port").to_string(), admin.expect("a port").to_string());
    tokio::spawn(bound.run(std::future::pending()));

    // The first client asks five times, and is refused twice.
    for (client, times) in [(1, 5), (2, 2), (3, 2)] {
        for _ in 0..times {
            let request = format!("{{\"path\":\"/\",\"ip\":\"192.0.2.{client}\"}}");
            post(&http, "/v1/take", &request).await;
        }
    }
    let request = format!("GET /v1/peaks HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    let (status, _, body) = send(&admin, &request).await;
    assert_eq!(status, 200, "{body}");
    let shown: Vec<PeaksStatus> = serde_json::from_str(&body).expect("peaks");
    let [api] = &shown[..] else { panic!("one limit: {shown:?}") };
    assert_eq!((api.policy.as_str(), api.count, api.window), ("api", 3, 60.0));
    assert_eq!((api.followed, api.one_in, api.missed), (3, 1, 0));
    assert_eq!(api.steps, [[1, 0, 3], [2, 2, 3], [3, 0, 1], [4, 0, 1], [5, 1, 1]]);
    assert!(!body.contains("192.0.2"), "{body}");
}
