//! Requests that are as much work as a client can make them.

use std::fmt::Write as _;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::http::post;
use super::server::{Running, descriptor, start_rules};

/// The longest path that conditions compare, in its dearest form.
fn slashes() -> String {
    "/".repeat(7_990)
}

fn rules_by_path(count: usize) -> String {
    let mut rules = String::new();
    for rule in 0..count {
        let _ = writeln!(
            rules,
            "[[rules]]\nname = \"rule {rule}\"\nkey = \"ip\"\nlimits = [\"5/hour\"]\nwhen = {{ path = \"/login/{rule}\" }}"
        );
    }
    rules
}

/// The time for which this thread had a processor. The server runs on it too, and what waits for a processor beside
/// other programs is no work.
fn worked() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time")
}

async fn take(server: &Running, body: &str) -> u16 {
    post(&server.http, "/v1/take", body).await.0
}

/// The least work of several, because other programs share the caches of the processor.
async fn least(server: &mut Running, path: &str) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..5 {
        let body = format!(r#"{{"ip":"192.0.2.7","path":"{path}"}}"#);
        let before = worked();
        assert_eq!(take(server, &body).await, 200);
        let between = worked();
        assert!(!server.is_over(&[("remote_address", "192.0.2.7"), ("path", path)]).await);
        least = least.min((between - before).max(worked() - between));
    }
    least
}

#[tokio::test]
async fn a_long_path_is_no_dearer_with_a_thousand_rules() {
    let mut few = start_rules(&rules_by_path(10)).await;
    let mut many = start_rules(&rules_by_path(1_000)).await;
    let (with_few, with_many) =
        (least(&mut few, &slashes()).await, least(&mut many, &slashes()).await);
    let plain = least(&mut many, "/").await;
    // Where each rule parses the path, a thousand rules take a hundred times as long as ten.
    assert!(with_many < 10 * (with_few + plain), "{with_few:?}, {with_many:?}, {plain:?}");
}

#[tokio::test]
async fn more_claims_or_fields_than_a_thousand_are_refused_at_once() {
    let server = start_rules(&rules_by_path(1)).await;
    let body = |what: &str, count: usize| {
        let texts: Vec<_> = (0..count).map(|number| format!("\"{number}\":\"\"")).collect();
        format!("{{\"ip\":\"192.0.2.7\",\"{what}\":{{{}}}}}", texts.join(","))
    };
    for what in ["claims", "headers"] {
        assert_eq!(take(&server, &body(what, 1_000)).await, 200);
        let few = take(&server, &body(what, 1_001)).await;
        // As many as fit into the largest body.
        let many = take(&server, &body(what, 24_000)).await;
        assert_eq!((few, many), (400, 400));
    }
}

/// A header that descriptors repeat is one line, and each of many is found by each of many rules.
#[tokio::test]
async fn many_entries_take_a_time_that_their_number_bounds() {
    let by_claim = |count: usize| {
        let mut rules = String::new();
        for rule in 0..count {
            let _ = writeln!(
                rules,
                "[[rules]]\nname = \"rule {rule}\"\nkey = \"global\"\nlimits = [\"5/hour\"]\n\
                 when = {{ any = [{{ claim = {{ x{rule} = \"b\" }} }}, {{ header = {{ x{rule} = \"b\" }} }}] }}"
            );
        }
        rules
    };
    let mut server = start_rules(&by_claim(1_000)).await;
    let entries: Vec<_> = (0..64).map(|number| format!("x{number}")).collect();
    let mut times = Vec::new();
    for descriptors in [1, 16] {
        let all: Vec<_> = (0..descriptors)
            .map(|number| {
                let value = format!("{number}{}", "a".repeat(200));
                descriptor(&entries.iter().map(|key| (&**key, &*value)).collect::<Vec<_>>())
            })
            .collect();
        let mut least = Duration::MAX;
        for _ in 0..5 {
            let before = worked();
            server.ask(all.clone()).await;
            least = least.min(worked() - before);
        }
        times.push(least);
    }
    // Sixteen times as many entries: 256 times as long where each is compared with those before.
    assert!(times[1] < 60 * times[0], "{times:?}");
}
