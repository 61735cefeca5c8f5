//! The scenarios. Each sets up a rule, and checks what a client gets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sluicegate_core::cost::{content_length, cost_from};
use sluicegate_core::limit::{Limits, WhenFull};
use sluicegate_core::store::OnStoreError;
use sluicegate_core::{Fields, Header, Ip, Limit, ManualClock, Memory, Rejection, Route};

use sluicegate_tests::servers::until;

use super::client::{Connection, Response, get};
use super::servers::{Anywhere, Server, Setup, Waiting};

const CLIENT: Header = Header("x-client");

/// A server to talk to, and its clock.
pub(crate) struct Running {
    pub(crate) at: SocketAddr,
    pub(crate) clock: ManualClock,
    waiting: Waiting,
}

impl Running {
    fn get(&self, path: &str, client: &str) -> Response {
        get(self.at, path, &[("x-client", client)])
    }

    pub(crate) fn statuses(&self, path: &str, client: &str, times: usize) -> Vec<u16> {
        (0..times).map(|_| self.get(path, client).status).collect()
    }
}

pub(crate) fn start(server: &impl Server, rule: impl Anywhere) -> Running {
    start_with(server, rule, |_| {})
}

pub(crate) fn start_with<S: Server>(
    server: &S,
    rule: impl Anywhere,
    change: impl FnOnce(&mut Setup<S::Store>),
) -> Running {
    let clock = ManualClock::new();
    let mut setup = Setup {
        store: server.store(&clock),
        rejection: Rejection::block(),
        fields: Fields::DRAFT,
        on_store_error: OnStoreError::Admit,
        inner: (Limit::per_second(1_000_000), Rejection::block()),
        clock: clock.clone(),
        waiting: Arc::new(Mutex::new(Box::new(|| 0))),
    };
    change(&mut setup);
    let waiting = setup.waiting.clone();
    Running { at: server.start(rule, setup), clock, waiting }
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Each scenario is a module, so that one macro can list it for every adapter. A scenario for one kind of store names
/// it.
macro_rules! scenarios {
    ($($name:ident($server:ident $(on $store:ty)?) $body:block)*) => {$(
        pub(crate) mod $name {
            use super::*;

            pub(crate) fn run($server: &impl Server $(<Store = $store>)?) $body
        }
    )*};
}

pub(crate) use scenarios;

scenarios! {
    limits_each_client_and_says_when_to_come_back(server) {
        let running = start(server, Limit::per_minute(2).by(CLIENT));
        let first = running.get("/", "alice");
        assert_eq!(first.status, 200);
        assert_eq!(first.header("ratelimit-policy"), r#""2/minute";q=2;w=60"#);
        assert_eq!(first.header("ratelimit"), r#""2/minute";r=1;t=30"#);
        assert_eq!(running.statuses("/", "alice", 1), [200]);
        let refused = running.get("/", "alice");
        assert_eq!(refused.status, 429);
        assert_eq!(refused.header("ratelimit"), r#""2/minute";r=0;t=30"#);
        assert_eq!(refused.header("retry-after"), "30");
        assert_eq!(refused.header("content-type"), "application/problem+json");
        assert_eq!(refused.header("cache-control"), "no-store");
        assert!(refused.body.contains("quota-exceeded"), "{}", refused.body);
        assert!(refused.body.contains(r#""violated-policies":["2/minute"]"#), "{}", refused.body);
        assert_eq!(running.statuses("/", "bob", 3), [200, 200, 429]);
        running.clock.advance(secs(30));
        assert_eq!(running.statuses("/", "alice", 2), [200, 429]);
    }

    fields_stay_out_of_responses_that_shared_caches_store(server) {
        for fields in [Fields::DRAFT, Fields::X_RATE_LIMIT, Fields::DRAFT.and(Fields::X_RATE_LIMIT)] {
            let rule = Limit::per_minute(2).by(CLIENT);
            let running = start_with(server, rule, |setup| setup.fields = fields);
            let stored = running.get("/public", "alice");
            assert_eq!(stored.status, 200);
            assert_eq!(stored.header("ratelimit"), "");
            assert_eq!(stored.header("ratelimit-policy"), "");
            assert_eq!(stored.header("x-ratelimit-remaining"), "");
            let own = running.get("/private", "alice");
            assert_eq!(own.header("ratelimit").is_empty(), fields == Fields::X_RATE_LIMIT);
            assert_eq!(own.header("x-ratelimit-remaining").is_empty(), fields == Fields::DRAFT);
            // No cache stores a refusal.
            let refused = running.get("/public", "alice");
            assert_eq!(refused.header("cache-control"), "no-store");
            assert_eq!(refused.header("ratelimit").is_empty(), fields == Fields::X_RATE_LIMIT);
        }
    }

    limits_by_the_peers_address(server) {
        let running = start(server, Limit::per_minute(2).by(Ip::peer()));
        // Other ports, and whatever the client claims, have the same address.
        for (client, status) in [("alice", 200), ("bob", 200), ("carol", 429)] {
            let forged = [("x-forwarded-for", client), ("forwarded", "for=192.0.2.1")];
            assert_eq!(get(running.at, "/", &forged).status, status);
        }
    }

    believes_only_named_proxies(server) {
        let running = start(server, Limit::per_minute(1).by(Ip::behind(["127.0.0.0/8"])));
        let from = |forwarded: &str| get(running.at, "/", &[("x-forwarded-for", forwarded)]).status;
        assert_eq!(from("192.0.2.1"), 200);
        assert_eq!(from("198.51.100.7, 192.0.2.1"), 429);
        assert_eq!(from("192.0.2.2"), 200);
        assert_eq!(from("::ffff:192.0.2.2"), 429);
        let lines = [("x-forwarded-for", "192.0.2.3"), ("x-forwarded-for", "192.0.2.1")];
        assert_eq!(get(running.at, "/", &lines).status, 429);
    }

    several_limits_are_charged_all_or_none(server) {
        let limits =
            Limits::from([Limit::fixed_window(2, secs(1)), Limit::fixed_window(3, secs(60))]);
        let running = start(server, limits.by(CLIENT));
        assert_eq!(running.statuses("/", "alice", 4), [200, 200, 429, 429]);
        running.clock.advance(secs(1));
        let third = running.get("/", "alice");
        assert_eq!(third.header("ratelimit"), r#""2/second";r=1;t=1, "3/minute";r=0;t=59"#);
        let refused = running.get("/", "alice");
        assert_eq!(refused.status, 429);
        assert_eq!(refused.header("ratelimit"), r#""3/minute";r=0;t=59"#);
        assert_eq!(refused.header("retry-after"), "59");
    }

    a_missing_key_is_the_clients_mistake(server) {
        let running = start(server, Limit::per_minute(1).by(CLIENT));
        let missing = get(running.at, "/", &[]);
        assert_eq!(missing.status, 400);
        assert!(missing.body.contains("x-client"), "{}", missing.body);
        let twice = get(running.at, "/", &[("x-client", "a"), ("x-client", "b")]);
        assert_eq!(twice.status, 400);
    }

    a_route_counts_for_itself(server) {
        let running = start(server, Limit::per_minute(2).by((CLIENT, Route)));
        assert_eq!(running.statuses("/200", "alice", 1), [200]);
        assert_eq!(running.statuses("/201", "alice", 2), [201, 429]);
    }

    what_never_fits_is_told_so(server) {
        let running = start(server, Limit::per_minute(5).by(CLIENT).cost(cost_from(Header("x-cost"))));
        let ask = |cost| get(running.at, "/", &[("x-client", "alice"), ("x-cost", cost)]);
        let never = ask("9");
        assert_eq!((never.status, never.header("retry-after").as_str()), (422, ""));
        assert_eq!(never.header("ratelimit"), r#""5/minute";r=5;t=0"#);
        assert!(never.body.contains("do not try again"), "{}", never.body);
        assert_eq!(ask("5").status, 200);
        assert_eq!((ask("9").status, ask("1").status), (422, 429));

        let rule = Limit::per_second(10).by(CLIENT).cost(content_length().per(1_000));
        let running = start(server, rule);
        let lines = [("x-client", "alice"), ("content-length", "50000")];
        let never = get(running.at, "/", &lines);
        assert_eq!((never.status, never.header("retry-after").as_str()), (413, ""));
    }

    old_fields_on_request(server) {
        let rule = Limit::per_minute(2).soft(1).by(CLIENT);
        let running = start_with(server, rule, |setup| setup.fields = Fields::X_RATE_LIMIT);
        let first = running.get("/", "alice");
        assert_eq!(first.header("ratelimit"), "");
        assert_eq!(first.header("x-ratelimit-limit"), "2");
        assert_eq!(first.header("x-ratelimit-remaining"), "1");
        assert_eq!(first.header("x-ratelimit-reset"), "30");
        assert_eq!(first.header("x-ratelimit-warning"), "");
        assert_ne!(running.get("/", "alice").header("x-ratelimit-warning"), "");
    }

    no_fields_on_request(server) {
        let rule = Limit::per_minute(1).by(CLIENT);
        let running = start_with(server, rule, |setup| setup.fields = Fields::NONE);
        assert_eq!(running.get("/", "alice").header("ratelimit"), "");
        let refused = running.get("/", "alice");
        assert_eq!(refused.header("ratelimit"), "");
        assert_eq!(refused.header("retry-after"), "60");
    }

    counts_only_failures(server) {
        let rule = Limit::per_hour(2).by(CLIENT).count_if(|status| status == 401);
        let running = start(server, rule);
        assert_eq!(running.statuses("/200", "alice", 5), [200; 5]);
        assert_eq!(running.statuses("/401", "alice", 3), [401, 401, 429]);
        assert_eq!(running.statuses("/200", "alice", 1), [429]);
    }

    settles_to_what_it_cost(server) {
        let rule = Limit::fixed_window(100, secs(60))
            .by(CLIENT)
            .cost(10)
            .settle_cost(|reply| reply.cost());
        let running = start(server, rule);
        assert_eq!(running.statuses("/cost/1", "alice", 2), [200, 200]);
        assert_eq!(running.statuses("/cost/150", "alice", 2), [200, 429]);
        running.clock.advance(secs(60));
        let next = running.get("/cost/10", "alice");
        assert_eq!(next.header("ratelimit"), r#""100/minute";r=38;t=60"#);
    }

    redirects(server) {
        let rule = Limit::per_minute(1).by(CLIENT);
        let running = start_with(server, rule, |setup| {
            setup.rejection = Rejection::redirect("https://busy.example.com/").status(303);
        });
        assert_eq!(running.statuses("/", "alice", 1), [200]);
        let sent = running.get("/", "alice");
        assert_eq!(sent.status, 303);
        assert_eq!(sent.header("location"), "https://busy.example.com/");
        assert_eq!(sent.header("retry-after"), "");
        assert_eq!(sent.header("cache-control"), "no-store");
    }

    degrades(server) {
        let rule = Limit::per_minute(1).by(CLIENT);
        let running = start_with(server, rule, |setup| setup.rejection = Rejection::degrade());
        assert_eq!(running.get("/", "alice").body, "all");
        let degraded = running.get("/", "alice");
        assert_eq!((degraded.status, degraded.body.as_str()), (200, "less"));
    }

    shadows(server) {
        let rule = Limit::per_minute(1).by(CLIENT);
        let running = start_with(server, rule, |setup| setup.rejection = Rejection::shadow());
        assert_eq!(running.statuses("/", "alice", 4), [200; 4]);
    }

    bans(server) {
        let running = start(server, Limit::per_minute(1).ban(secs(600)).by(CLIENT));
        assert_eq!(running.statuses("/", "alice", 1), [200]);
        let banned = running.get("/", "alice");
        assert_eq!((banned.status, banned.header("retry-after").as_str()), (429, "660"));
        assert!(banned.body.contains("abnormal-usage-detected"), "{}", banned.body);
        running.clock.advance(secs(659));
        assert_eq!(running.statuses("/", "alice", 1), [429]);
        running.clock.advance(secs(1));
        assert_eq!(running.statuses("/", "alice", 1), [200]);
    }

    waits_in_order(server) {
        let rule = Limit::per_second(10).burst(1).by(CLIENT);
        let running = start_with(server, rule, |setup| {
            setup.rejection = Rejection::queue(Duration::from_millis(200));
        });
        let at = running.at;
        assert_eq!(running.statuses("/", "alice", 1), [200]);
        let waiter = |sleepers| {
            let waiter = thread::spawn(move || get(at, "/", &[("x-client", "alice")]).status);
            while running.clock.sleepers() < sleepers {
                thread::yield_now();
            }
            waiter
        };
        let (first, second) = (waiter(1), waiter(2));
        assert_eq!(running.statuses("/", "alice", 1), [429], "it could not be served in time");
        running.clock.advance(Duration::from_millis(100));
        assert_eq!(first.join().unwrap(), 200);
        running.clock.advance(Duration::from_millis(100));
        assert_eq!(second.join().unwrap(), 200);
    }

    a_place_is_held_until_the_body_has_ended(server) {
        let running = start(server, Limit::concurrent(1).by(CLIENT));
        for _ in 0..2 {
            let mut slow = Connection::get(running.at, "/slow", &[("x-client", "alice")]);
            slow.read_until("the first part");
            assert_eq!(running.statuses("/", "alice", 2), [429; 2]);
            assert_eq!(running.statuses("/", "bob", 1), [200]);
            running.clock.advance(secs(1));
            slow.read_to_end();
            assert_eq!(running.statuses("/", "alice", 2), [200; 2]);
        }
    }

    what_a_limit_within_refuses_costs_nothing(server) {
        let rule = Limit::fixed_window(2, secs(60)).by(CLIENT);
        let running = start_with(server, rule, |setup| {
            setup.inner = (Limit::per_second(1), Rejection::block());
        });
        assert_eq!(running.statuses("/", "alice", 5), [200, 429, 429, 429, 429]);
        running.clock.advance(secs(1));
        assert_eq!(running.statuses("/", "alice", 2), [200, 429]);
        running.clock.advance(secs(1));
        assert_eq!(running.statuses("/", "alice", 1), [429], "both are spent");
    }

    what_was_never_served_is_given_back(server) {
        let rule = Limit::fixed_window(2, secs(60)).by(CLIENT);
        let running = start_with(server, rule, |setup| {
            setup.inner = (Limit::per_second(1), Rejection::queue(secs(9)));
        });
        assert_eq!(running.statuses("/", "alice", 1), [200]);
        for _ in 0..3 {
            let waiting = || running.waiting.lock().unwrap()();
            let request = Connection::get(running.at, "/", &[("x-client", "alice")]);
            until("the request to wait", || (waiting() == 1).then_some(()));
            drop(request);
            until("the request to be dropped", || (waiting() == 0).then_some(()));
        }
        running.clock.advance(secs(9));
        assert_eq!(running.statuses("/", "alice", 2), [200, 429]);
    }

    exactly_the_limit_is_admitted_from_many_connections(server) {
        let running = start(server, Limit::fixed_window(50, secs(60)).by(CLIENT));
        for _ in 0..2 {
            let at = running.at;
            let clients: Vec<_> = (0..8)
                .map(|_| {
                    thread::spawn(move || {
                        let statuses = (0..20).map(|_| get(at, "/", &[("x-client", "alice")]).status);
                        statuses.filter(|status| *status == 200).count()
                    })
                })
                .collect();
            let admitted: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
            assert_eq!(admitted, 50);
            running.clock.advance(secs(60));
        }
    }

    a_full_store_is_503_when_told_to_refuse(server on Memory) {
        let limit = Limit::per_hour(1).when_full(WhenFull::Admit);
        let running = start_with(server, limit.by(CLIENT), |setup| {
            setup.store = Memory::builder().capacity(1).clock(ManualClock::new()).build();
            setup.on_store_error = OnStoreError::Refuse;
        });
        let full = (0..100)
            .map(|client| running.get("/", &client.to_string()))
            .find(|response| response.status != 200)
            .expect("a store with room for one key is full at some time");
        assert_eq!(full.status, 503);
        assert!(full.body.contains("temporary-reduced-capacity"), "{}", full.body);
    }
}
