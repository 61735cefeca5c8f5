//! Known bugs of other limiters on the way from the wire to the decision. Each scenario is named after its hazard.

use std::time::Duration;

use sluicegate_config::{Environment, Policies, read_toml};
use sluicegate_core::key::{Host, KeyBuf, Path, Query};
use sluicegate_core::limit::WhenFull;
use sluicegate_core::store::OnStoreError;
use sluicegate_core::{First, Header, Ip, Limit, Memory, Route};

use super::client::get;
use super::servers::Server;
use super::table::{Running, scenarios, start, start_with};

/// Trusts proxies on loopback addresses, where every test's requests come from.
fn behind_proxies(server: &impl Server) -> Running {
    start(server, Limit::per_hour(1).by(Ip::behind(["127.0.0.0/8"])))
}

/// The policies of a file with one rule.
fn in_a_file(rule: &str) -> Policies {
    let document = read_toml(&format!("[[rules]]\nname = \"a\"\n{rule}")).unwrap();
    Policies::new(&document, &Environment::new()).unwrap()
}

fn by_host_in_a_file(host: &str) -> Policies {
    in_a_file(&format!("key = \"global\"\nlimits = [\"2/hour\"]\nwhen = {{ host = \"{host}\" }}"))
}

fn forwarded(running: &Running, lines: &[&str]) -> u16 {
    let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
    get(running.at, "/", &lines).status
}

scenarios! {
    retry_after_rounded_down(server) {
        let running = start(server, Limit::per_second(3).by(Ip::peer()));
        let refused = loop {
            let response = get(running.at, "/", &[]);
            if response.status == 429 {
                break response;
            }
        };
        let seconds = refused.header("retry-after").parse().unwrap();
        assert!(seconds >= 1);
        running.clock.advance(Duration::from_secs(seconds));
        assert_eq!(get(running.at, "/", &[]).status, 200);
    }

    ipv4_mapped_ipv6_all_in_one_bucket(server) {
        let running = behind_proxies(server);
        assert_eq!(forwarded(&running, &["::ffff:1.2.3.4"]), 200);
        assert_eq!(forwarded(&running, &["1.2.3.4"]), 429);
        assert_eq!(forwarded(&running, &["::ffff:9.9.9.9"]), 200);
    }

    leftmost_or_first_line_of_a_forwarding_header(server) {
        let running = behind_proxies(server);
        assert_eq!(forwarded(&running, &["192.0.2.1"]), 200);
        assert_eq!(forwarded(&running, &["203.0.113.5, 192.0.2.1"]), 429);
        assert_eq!(forwarded(&running, &["203.0.113.6", "192.0.2.1"]), 429);
        assert_eq!(forwarded(&running, &["127.0.0.9, 192.0.2.1, 127.0.0.2"]), 429);
    }

    an_unparseable_hop_is_skipped_and_the_attackers_believed(server) {
        let running = behind_proxies(server);
        // The walk stops at the hop that cannot be read, so the key is the proxy's own address.
        assert_eq!(forwarded(&running, &["203.0.113.1, unknown"]), 200);
        assert_eq!(forwarded(&running, &["203.0.113.2, _hidden"]), 429);
        assert_eq!(forwarded(&running, &["203.0.113.3, nonsense"]), 429);
        // A port is allowed.
        assert_eq!(forwarded(&running, &["1.2.3.4:5678"]), 200);
        assert_eq!(forwarded(&running, &["1.2.3.4"]), 429);
    }

    client_sent_forwarded_is_preferred_over_the_proxys_header(server) {
        let running = behind_proxies(server);
        for (forged, status) in [("for=203.0.113.1", 200), ("for=203.0.113.2", 429)] {
            let lines = [("forwarded", forged), ("x-forwarded-for", "192.0.2.1")];
            assert_eq!(get(running.at, "/", &lines).status, status);
        }
    }

    key_extractor_ignored(server) {
        let key = (Query("tenant"), First((Header("x-api-key"), Ip::peer())));
        let running = start(server, Limit::per_hour(1).by(key));
        let ask = |path, key| get(running.at, path, &[("x-api-key", key)]).status;
        assert_eq!(ask("/?tenant=a", "k"), 200);
        assert_eq!(ask("/?tenant=a", "k"), 429);
        assert_eq!(ask("/?tenant=b", "k"), 200);
        assert_eq!(ask("/?tenant=a", "l"), 200);
        // A key with the bytes of an address is not the key of that address.
        assert_eq!(get(running.at, "/?tenant=a", &[]).status, 200);
        assert_eq!(ask("/?tenant=a", "\u{7f}"), 400, "no key at all");
    }

    absolute_form_names_another_host_than_the_field(server) {
        // The client's own `Host` field says `test`.
        let running = start(server, Limit::per_hour(2).by(Host));
        let ask = |target: &str| get(running.at, target, &[]).status;
        assert_eq!(ask("http://x1/200"), 400);
        assert_eq!(ask("http://TEST.:80/200"), 200);
        assert_eq!(ask("http://x2/200"), 400);
        assert_eq!(ask("/200"), 200);
        assert_eq!(ask("http://test/200"), 429);
        assert_eq!(ask("/200"), 429);

        let running = start(server, Limit::per_hour(2).by(Ip::peer()).when(Host.is("test")));
        let ask = |target: &str| get(running.at, target, &[]).status;
        let statuses = ["/200", "http://x1/200", "http://test./200", "/200"].map(ask);
        assert_eq!(statuses, [200, 400, 200, 429]);
    }

    two_host_fields(server) {
        let running = start(server, Limit::per_hour(1).by(Host));
        for other in ["x1", "test"] {
            assert_eq!(get(running.at, "/200", &[("host", other)]).status, 400);
        }
        assert_eq!(get(running.at, "/200", &[]).status, 200);
        assert_eq!(get(running.at, "/200", &[]).status, 429);
    }

    a_host_in_a_file_of_policies_is_read_as_in_code(server) {
        let running = start(server, by_host_in_a_file("test"));
        let ask = |target: &str| get(running.at, target, &[]).status;
        let statuses = ["/200", "http://x1/200", "http://test./200", "/200"].map(ask);
        assert_eq!(statuses, [200, 400, 200, 429]);
    }

    a_spelling_of_the_path_is_a_fresh_budget(server) {
        // Frameworks differ in which of these reach a handler. All that do share one budget.
        let served = |running: &Running| {
            let paths = ["/cost/200", "/c%6fst/200", "/%63ost/200", "/cost/20%30", "/%63%6F%73%74/200"];
            let ask = |path: &&str| get(running.at, path, &[("x-client", "alice")]).status == 200;
            paths.iter().cycle().take(25).filter(|path| ask(path)).count()
        };
        let by_route = Limit::per_hour(3).by((Header("x-client"), Route));
        assert_eq!(served(&start(server, by_route)), 3);
        let by_path = Limit::per_hour(3).by(Header("x-client")).when(Path.matches("/cost/{any}"));
        assert!((1..=3).contains(&served(&start(server, by_path))));
        let file = "key = \"global\"\nlimits = [\"3/hour\"]\nwhen = { path = \"/cost/{any}\" }";
        assert!((1..=3).contains(&served(&start(server, in_a_file(file)))));
    }

    no_key_means_no_limit(server) {
        let running = start(server, Limit::per_hour(1).by(Header("x-api-key")));
        for _ in 0..3 {
            let keyless = get(running.at, "/", &[]);
            assert_eq!(keyless.status, 400);
            assert!(keyless.body.contains("`x-api-key`"), "{}", keyless.body);
        }
    }

    store_failure_answered_as_429(server on Memory) {
        for (on_store_error, expected) in [(OnStoreError::Admit, 200), (OnStoreError::Refuse, 503)] {
            let limit = Limit::per_day(1).when_full(WhenFull::Admit);
            let other = Limit::fixed_window(1, Duration::from_secs(60));
            let store = Memory::with_capacity(1);
            (0..1_000_u64).for_each(|number| drop(store.spend(&limit, &KeyBuf::of(number), 1)));
            let running = start_with(server, other.by(Header("x-client")), |setup| {
                setup.store = store.clone();
                setup.on_store_error = on_store_error;
            });
            assert_eq!(running.statuses("/", "alice", 1), [200], "a window has another table");
            let running = start_with(server, limit.by(Header("x-client")), |setup| {
                setup.store = store;
                setup.on_store_error = on_store_error;
            });
            assert_eq!(running.statuses("/", "alice", 3), [expected; 3]);
        }
    }

    a_limit_that_refuses_when_full_answers_503(server on Memory) {
        for on_store_error in [OnStoreError::Admit, OnStoreError::Refuse] {
            let limit = Limit::per_day(1).when_full(WhenFull::Refuse);
            let store = Memory::with_capacity(1);
            (0..1_000_u64).for_each(|number| drop(store.spend(&limit, &KeyBuf::of(number), 1)));
            let running = start_with(server, limit.by(Header("x-client")), |setup| {
                setup.store = store;
                setup.on_store_error = on_store_error;
            });
            assert_eq!(running.statuses("/", "alice", 3), [503; 3]);
        }
    }

    store_that_is_gone_answered_as_429(server) {
        for (on_store_error, expected) in [(OnStoreError::Admit, 200), (OnStoreError::Refuse, 503)] {
            let running = start_with(server, Limit::per_hour(1).by(Header("x-client")), |setup| {
                setup.on_store_error = on_store_error;
            });
            assert_eq!(running.statuses("/", "alice", 20), [expected; 20]);
        }
    }

    sub_second_windows_become_0_s(server) {
        let limit = Limit::fixed_window(2, Duration::from_millis(100));
        let running = start(server, limit.by(Header("x-client")));
        for _ in 0..3 {
            assert_eq!(running.statuses("/", "alice", 3), [200, 200, 429]);
            running.clock.advance(Duration::from_millis(100));
        }
    }

    per_second_60_means_one_a_minute(server) {
        let running = start(server, Limit::per_second(60).by(Header("x-client")));
        let admitted = running.statuses("/", "alice", 61);
        assert_eq!(admitted.iter().filter(|status| **status == 200).count(), 60);
        running.clock.advance(Duration::from_secs(1));
        assert_eq!(running.statuses("/", "alice", 60), [200; 60]);
    }
}
