use std::time::Duration;

use proptest::prelude::*;

use super::deciding::{get, poll, send, with};
use super::*;

#[test]
fn a_reload_puts_new_numbers_in_force_and_loses_nothing_that_waits() {
    let clock = ManualClock::new();
    let live = live("capacity = { in_flight = 1 }\nqueue = '1 second'", &clock);
    let throttle = live.throttle().unwrap();
    let mut sent = send(&throttle, vec![get("/1"), get("/2"), get("/3"), get("/4")]);
    assert_eq!(throttle.throttle().snapshot().queued, 3);
    let wider = "capacity = { in_flight = 3 }\nqueue = '10 ms'\nexempt = { path = '/health' }";
    live.replace(policies(wider, &clock).unwrap()).unwrap();
    let snapshot = throttle.throttle().snapshot();
    assert_eq!((snapshot.running, snapshot.queued, snapshot.queue_bound), (3, 1, 30_000));
    assert!(sent.iter_mut().all(|sent| poll(sent).is_pending()));
    // What is read of requests is that of the new file, in services that were made before.
    let counted = throttle.throttle().snapshot().counts.offered;
    let _exempt = send(&throttle, vec![get("/health")]);
    assert_eq!(throttle.throttle().snapshot().counts.offered, counted);
    assert_eq!(live.throttle().unwrap().throttle().snapshot().counts.offered, counted);
}

#[test]
fn what_is_read_of_requests_follows_the_other_parts_of_a_file() {
    // Noon in UTC.
    let clock = ManualClock::at(Duration::from_secs(1_768_000_000 / 86_400 * 86_400 + 43_200));
    let read = |above: &str, below: &str| {
        let said = format!(
            "{above}\nrules = []\n[throttle]\ncapacity = {{ in_flight = 9 }}\nqueue = '1 second'\n{below}"
        );
        Policies::new(&read_toml(&said).unwrap(), &Environment::new().clock(&clock)).unwrap()
    };
    let offered = |throttle: &FileThrottle| {
        let _sent = send(throttle, vec![with("/", "x-forwarded-for", "10.0.0.1", "192.0.2.1")]);
        throttle.throttle().snapshot().counts.offered
    };
    let exempt = "exempt = { network = '10.0.0.0/8' }";
    let trusting = |proxy: &str| read(&format!("proxies = {{ trusted = ['{proxy}'] }}"), exempt);
    let live = Live::of(trusting("192.0.2.1"));
    let throttle = live.throttle().unwrap();
    assert_eq!(offered(&throttle), 0);
    live.replace(trusting("192.0.2.2")).unwrap();
    assert_eq!(offered(&throttle), 1, "nobody is believed who says who the client is");

    let exempt = "exempt = { hours = { between = ['11:00', '13:00'] } }";
    let in_zone = |zone: &str| read(&format!("time_zone = '{zone}'"), exempt);
    let live = Live::of(in_zone("UTC"));
    let throttle = live.throttle().unwrap();
    assert_eq!(offered(&throttle), 0);
    live.replace(in_zone("Asia/Tokyo")).unwrap();
    assert_eq!(offered(&throttle), 1, "it is evening there");
}

#[test]
fn a_service_without_a_throttle_refuses_a_file_that_adds_one() {
    let clock = ManualClock::new();
    let without = || Policies::new(&read_toml("rules = []").unwrap(), &Environment::new()).unwrap();
    let with = || policies("capacity = { in_flight = 1 }\nqueue = '1 second'", &clock).unwrap();
    let live = Live::of(without());
    live.replace(with()).unwrap();
    live.replace(without()).unwrap();
    assert!(live.throttle().is_none());
    let refused = live.replace(with()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "throttle: the service runs without a throttle, and cannot begin to use one: start it anew"
    );
    assert!(live.throttle().is_none());
    live.replace(without()).unwrap();
}

#[test]
fn what_cannot_change_is_refused_with_its_line_and_the_old_file_stays_in_force() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policies.toml");
    let write =
        |said: &str| std::fs::write(&path, format!("rules = []\n[throttle]\n{said}")).unwrap();
    write("queue = '1 second'\ncapacity = { in_flight = 2 }");
    let live = Live::open(&path, Environment::new()).unwrap();
    let throttle = live.throttle().unwrap();
    let refused = |said: &str| {
        write(said);
        let pending = live.pending().unwrap_err().to_string();
        let told = live.reload().unwrap_err().to_string();
        assert_eq!(pending, told);
        assert_eq!(throttle.throttle().snapshot().limit, Some(2), "the old one stays");
        told.rsplit_once("policies.toml:").unwrap().1.to_owned()
    };
    let fixed = "cannot change while the throttle runs: start it anew";
    let kind = refused("queue = '1 second'\ncapacity = { requests_per_second = 2 }");
    assert_eq!(kind, format!("4:12: throttle.capacity: the kind of capacity {fixed}"));
    let classes = refused("queue = '1 second'\ncapacity = { in_flight = 9 }\nclasses = ['a']");
    assert_eq!(classes, format!("5:11: throttle.classes: the list of classes {fixed}"));
    let partitions = "partitions = [{ name = 'a', share = '5%', when = {} }]";
    let partitions =
        refused(&format!("queue = '1 second'\ncapacity = {{ in_flight = 9 }}\n{partitions}"));
    assert_eq!(partitions, format!("5:14: throttle.partitions: the list of partitions {fixed}"));
    std::fs::write(&path, "rules = []").unwrap();
    let pending = live.pending().unwrap_err().to_string();
    let removed = live.reload().unwrap_err().to_string();
    assert_eq!(pending, removed);
    assert!(removed.contains("the throttle is in use, and cannot be removed"), "{removed}");

    write("queue = '2 seconds'\ncapacity = { adaptive = {} }");
    let changes = live.reload().unwrap();
    assert_eq!(changes.settings, ["throttle"]);
    assert_eq!(throttle.throttle().snapshot().limit, Some(20));
    write("queue = '2 seconds'\ncapacity = { in_flight = 5 }");
    live.reload().unwrap();
    assert_eq!(throttle.throttle().snapshot().limit, Some(5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Files that change at any time, between requests that come and go.
    #[test]
    fn no_file_loses_a_request(
        steps in proptest::collection::vec((0..4_u8, 1..6_u64, 1..500_u64), 1..60),
    ) {
        let clock = ManualClock::new();
        let live = live("capacity = { in_flight = 2 }\nqueue = '1 second'", &clock);
        let throttle = live.throttle().unwrap();
        let mut sent = Vec::new();
        let mut came = 0;
        for (step, places, millis) in steps {
            match step {
                0 => {
                    let said = format!(
                        "capacity = {{ in_flight = {places} }}\nqueue = '{millis} ms'\nweights = [{places}, 1, 1, 1]"
                    );
                    live.replace(policies(&said, &clock).unwrap()).unwrap();
                }
                1 if !sent.is_empty() => drop(sent.remove(places as usize % sent.len())),
                _ => {
                    came += 1;
                    sent.extend(send(&throttle, vec![get("/")]));
                }
            }
            let snapshot = throttle.throttle().snapshot();
            sent.retain_mut(|sent| poll(sent).is_pending());
            prop_assert_eq!(snapshot.running + snapshot.queued, sent.len());
            prop_assert_eq!(snapshot.counts.offered, came);
        }
    }
}
