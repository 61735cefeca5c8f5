//! Which of several servers of leases is the master.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sluicegate_core::ManualClock;
use sluicegate_lease::pool::{Change, LeaseHolder};
use sluicegate_lease::{Mastership, Role};
use sluicegate_redis::{Redis, RedisMastership};
use sluicegate_tests::servers::{Server, until};
use tokio::runtime::Runtime;

use super::store::{by_hand, open, own_prefix, patient, runtime, shared};

/// Candidates for one name, and the clock that turns for all.
struct Election {
    clock: ManualClock,
    prefix: String,
}

impl Election {
    fn new() -> Self {
        Self { clock: ManualClock::new(), prefix: own_prefix() }
    }

    fn redis(&self) -> Redis {
        open(by_hand(&self.clock).url(&shared().url()).prefix(&self.prefix))
    }

    fn stand(&self, address: &str) -> RedisMastership {
        // So short that the list of clients is whole from the beginning.
        self.stand_with(address, Duration::ZERO)
    }

    fn stand_with(&self, address: &str, longest: Duration) -> RedisMastership {
        self.stand_at(self.redis(), address, longest)
    }

    fn stand_at(&self, redis: Redis, address: &str, longest: Duration) -> RedisMastership {
        let _entered = runtime().enter();
        let candidacy = redis.mastership("quota", address).lease(Duration::from_secs(2));
        candidacy.longest_lease(longest).stand().expect("a candidate")
    }

    /// Turns the clock until the candidate has a role that `found` accepts. No faster than real time, so that an answer
    /// of a busy machine is no later by this clock than it is.
    fn until<T>(
        &self,
        what: &str,
        elected: &RedisMastership,
        found: impl Fn(&Role) -> Option<T>,
    ) -> T {
        let roles = elected.roles();
        until(what, || {
            self.clock.advance(Duration::from_millis(5));
            found(&roles.borrow())
        })
    }

    fn until_master(&self, elected: &RedisMastership) -> (u32, Option<Vec<LeaseHolder>>) {
        self.until("a master", elected, |role| match role {
            Role::Master { fence, known, .. } => {
                Some((*fence, known.as_ref().map(|known| known.to_vec())))
            }
            Role::Other { .. } => None,
        })
    }

    /// Turns the clock to the master's next call, and waits until it has been answered.
    fn turn_by_a_call(&self, master: &RedisMastership) {
        let roles = master.roles();
        let ends = || match &*roles.borrow() {
            Role::Master { until, .. } => until.expect("a moment"),
            role => panic!("{role:?}"),
        };
        let before = ends();
        self.clock.advance(Duration::from_millis(500));
        until("a longer mastership", || (ends() > before).then_some(()));
    }

    /// Waits for the first answer. The clock stands still, so that the master has time to call on a busy machine.
    fn until_other(&self, elected: &RedisMastership, address: &str) {
        let roles = elected.roles();
        until("another master", || match &*roles.borrow() {
            Role::Other { master: Some(master) } => (&**master == address).then_some(()),
            _ => None,
        });
    }
}

fn joined(client: &str) -> Change {
    Change::Add { resource: "db".into(), client: client.into() }
}

fn left(client: &str) -> Change {
    Change::Remove { resource: "db".into(), client: client.into() }
}

fn record(elected: &RedisMastership, changes: Vec<Change>) -> Result<(), String> {
    runtime().block_on(elected.record(changes)).map_err(|error| error.to_string())
}

#[test]
fn one_candidate_is_the_master_and_the_others_know_where_it_is() {
    let election = Election::new();
    let one = election.stand("http://one");
    let (first, known) = election.until_master(&one);
    // There was nobody before, as far as anyone knows.
    assert_eq!(known, None);
    let two = election.stand("http://two");
    election.until_other(&two, "http://one");
    // It stays the master, with the same fence.
    for _ in 0..20 {
        election.turn_by_a_call(&one);
        assert_eq!(election.until_master(&one).0, first);
        assert!(matches!(&*two.roles().borrow(), Role::Other { .. }));
    }
}

#[test]
fn a_master_that_resigns_is_followed_by_one_with_a_larger_fence_that_knows_the_clients() {
    let election = Election::new();
    let one = election.stand("http://one");
    let (first, _) = election.until_master(&one);
    let two = election.stand("http://two");
    election.until_other(&two, "http://one");
    record(&one, vec![joined("a"), joined("b"), joined("c")]).expect("a record");
    record(&one, vec![left("b")]).expect("a record");
    drop(one);
    let (second, known) = election.until_master(&two);
    assert!(second > first, "{second} after {first}");
    let mut clients: Vec<_> =
        known.expect("a list").into_iter().map(|known| known.client).collect();
    clients.sort();
    assert_eq!(clients, ["a".into(), "c".into()] as [Box<str>; 2]);
}

#[test]
fn a_master_that_is_silent_is_followed_and_writes_nothing_any_more() {
    let election = Election::new();
    let earliest = election.clock.now();
    // A process of its own, which is killed.
    let process = Runtime::new().expect("a runtime");
    let one = {
        let _entered = process.enter();
        let redis =
            Redis::builder().clock(&election.clock).url(&shared().url()).prefix(&election.prefix);
        let candidacy = redis.build().expect("a store").mastership("quota", "http://one");
        candidacy.lease(Duration::from_secs(2)).stand().expect("a candidate")
    };
    let (first, _) = election.until_master(&one);
    let two = election.stand("http://two");
    election.until_other(&two, "http://one");
    process.shutdown_background();
    let (second, _) = election.until_master(&two);
    assert!(second > first);
    // Not before its lease of two seconds has ended, whenever the busy machine let it begin.
    let waited = Duration::from_micros(election.clock.now() - earliest);
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    assert_eq!(record(&two, vec![joined("a")]), Ok(()));
    // It still believes that it is the master, and asks with its old fence.
    let late = election.stand("http://three");
    election.until_other(&late, "http://two");
    assert_eq!(record(&late, vec![joined("x")]), Err("this server is not the master".to_owned()));
    drop(one);
}

#[test]
fn a_server_that_has_lost_everything_gets_a_larger_fence_and_no_clients() {
    let election = Election::new();
    let one = election.stand("http://one");
    let (first, _) = election.until_master(&one);
    record(&one, vec![joined("a")]).expect("a record");
    let (master, clients) = (row(&election, "master"), row(&election, "clients"));
    shared().cli(["DEL", &master, &clients]);
    // To its next call. The clock stands still after that, so its lease does not end before it has an answer.
    election.clock.advance(Duration::from_millis(500));
    let roles = one.roles();
    let (second, known) = until("a new fence", || match &*roles.borrow() {
        Role::Master { fence, known, .. } if *fence > first => Some((*fence, known.clone())),
        _ => None,
    });
    assert_eq!((second, known), (first + 1, None));
    drop(one);
}

#[test]
fn a_list_of_clients_that_the_server_has_evicted_is_not_taken_for_an_empty_one() {
    let election = Election::new();
    let one = election.stand("http://one");
    election.until_master(&one);
    let two = election.stand("http://two");
    election.until_other(&two, "http://one");
    record(&one, vec![joined("a")]).expect("a record");
    shared().cli(["DEL", &row(&election, "clients")]);
    // What is written after that is a part of the list only.
    record(&one, vec![joined("b")]).expect("a record");
    drop(one);
    assert_eq!(election.until_master(&two).1, None);
}

/// The name of a row, as it is in Redis.
fn row(election: &Election, what: &str) -> String {
    let rows = shared().cli(["KEYS", &format!("{}*{what}", election.prefix)]).list();
    rows.into_iter().next().expect("a row").text()
}

#[test]
fn a_list_that_was_begun_anew_is_not_whole_before_every_earlier_lease_has_ended() {
    let election = Election::new();
    let longest = Duration::from_secs(20);
    // The list begins between these two moments.
    let earliest = election.clock.now();
    let mut master = election.stand_with("http://0", longest);
    assert_eq!(election.until_master(&master).1, None);
    record(&master, vec![joined("a")]).expect("a record");
    let latest = election.clock.now();
    for turn in 1.. {
        // Clients of masters before the first one, which the list lacks, may hold leases.
        let next = election.stand_with(&format!("http://{turn}"), longest);
        election.until_other(&next, &format!("http://{}", turn - 1));
        // The election is between these two.
        let before = election.clock.now();
        master = next;
        let (_, known) = election.until_master(&master);
        let after = election.clock.now();
        let at_most = Duration::from_micros(after - earliest);
        assert!(known.is_none() || at_most >= longest, "known after {at_most:?}");
        let at_least = Duration::from_micros(before.saturating_sub(latest));
        assert!(known.is_some() || at_least < longest, "not known after {at_least:?}");
        if known.is_some() {
            break;
        }
        (0..8).for_each(|_| election.turn_by_a_call(&master));
    }
}

#[test]
fn a_candidacy_that_makes_no_sense_is_refused() {
    let election = Election::new();
    let redis = election.redis();
    let _entered = runtime().enter();
    for (name, address, lease, text) in [
        ("", "http://one", 2_000, "the name has 0 bytes, but must have from 1 to 1,024"),
        ("quota", "", 2_000, "the address has 0 bytes, but must have from 1 to 1,024"),
        ("quota", "http://one", 99, "the lease is 99ms, but must be from 100ms to 60s"),
        ("quota", "http://one", 60_001, "the lease is 60.001s, but must be from 100ms to 60s"),
    ] {
        let candidacy = redis.mastership(name, address).lease(Duration::from_millis(lease));
        assert_eq!(candidacy.stand().expect_err("an error").to_string(), text);
    }
}

/// Passes everything on to a server, and what the server says only until it is told to hold that back.
struct Muffler {
    address: SocketAddr,
    holds: Arc<AtomicBool>,
}

impl Muffler {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let holds = Arc::new(AtomicBool::new(false));
        let held = Arc::clone(&holds);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, held) = (client.expect("a connection"), Arc::clone(&held));
                let Ok(server) = TcpStream::connect(server) else { continue };
                let from_client = client.try_clone().expect("a handle");
                let to_server = server.try_clone().expect("a handle");
                thread::spawn(move || copy(from_client, to_server, || false));
                thread::spawn(move || copy(server, client, || held.load(Ordering::SeqCst)));
            }
        });
        Self { address, holds }
    }

    fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::SeqCst);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the thread has nothing else to do while it holds bytes back"
)]
fn copy(mut from: TcpStream, mut to: TcpStream, holds: impl Fn() -> bool) -> io::Result<()> {
    let mut bytes = [0; 4_096];
    loop {
        let size = from.read(&mut bytes)?;
        while holds() {
            thread::sleep(Duration::from_millis(1));
        }
        match size {
            0 => return to.shutdown(std::net::Shutdown::Both),
            size => to.write_all(&bytes[..size])?,
        }
    }
}

#[test]
fn a_master_that_hears_no_answers_is_followed_though_its_questions_arrive() {
    let election = Election::new();
    let muffler = Muffler::before(shared().address());
    let redis = open(by_hand(&election.clock).url(&muffler.url()).prefix(&election.prefix));
    let deaf = election.stand_at(redis, "http://deaf", Duration::ZERO);
    let (first, _) = election.until_master(&deaf);
    let others = ["http://two", "http://three"].map(|address| (address, election.stand(address)));
    for (_, other) in &others {
        election.until_other(other, "http://deaf");
    }
    muffler.hold(true);
    let [two, three] = &others;
    let fence_of = |elected: &RedisMastership| match &*elected.roles().borrow() {
        Role::Master { fence, .. } => Some(*fence),
        Role::Other { .. } => None,
    };
    let (second, leader) = election.until("another master", &deaf, |_| {
        let mut led =
            [two, three].into_iter().filter_map(|other| Some((fence_of(&other.1)?, other.0)));
        led.next()
    });
    assert!(second > first);
    // Nor is it elected when the next master resigns.
    let [two, three] = others;
    let (next, gone) = if leader == two.0 { (three, two) } else { (two, three) };
    drop(gone);
    let (third, _) = election.until_master(&next.1);
    assert!(third > second);
    muffler.hold(false);
    election.until("to hear of the master", &deaf, |role| match role {
        Role::Other { master: Some(master) } => (&**master == next.0).then_some(()),
        _ => None,
    });
}

/// Elects a master that has this many clients. Returns whether it was elected once.
fn elects_once_with(clients: usize) -> bool {
    let (server, prefix) = (Server::start(), own_prefix());
    let stand = |address: &str| {
        let redis = open(patient().url(&server.url()).prefix(&prefix));
        let _entered = runtime().enter();
        let candidacy = redis.mastership("quota", address).longest_lease(Duration::ZERO);
        candidacy.stand().expect("a candidate")
    };
    let led = |elected: &RedisMastership| match &*elected.roles().borrow() {
        Role::Master { fence, known, .. } => {
            Some((*fence, known.as_ref().map(|known| known.len())))
        }
        Role::Other { .. } => None,
    };
    let one = stand("http://one");
    until("a master", || led(&one));
    let rows = server.cli(["KEYS", &format!("{prefix}*clients")]).list();
    let row = rows.into_iter().next().expect("a row").text();
    let fill =
        "for i = ARGV[1], ARGV[2] do redis.call('SADD', KEYS[1], '\\2\\0\\0\\0dbclient-' .. i) end";
    for from in (0..clients).step_by(20_000) {
        let to = (from + 20_000).min(clients) - 1;
        server.cli(["EVAL", fill, "1", &row, &from.to_string(), &to.to_string()]);
    }
    let two = stand("http://two");
    let is_other = || matches!(&*two.roles().borrow(), Role::Other { master: Some(_) });
    until("another master", || (is_other() || led(&two).is_some()).then_some(()));
    let leaders = until("the same master", || match (led(&one), led(&two)) {
        (None, None) => None,
        leaders => Some(leaders),
    });
    server.cli(["CONFIG", "RESETSTAT"]);
    let ((Some((first, _)), None), None) = (leaders, led(&two)) else {
        // The first one stood still until its term had ended.
        return false;
    };
    drop(one);
    let begun = Instant::now();
    let (second, known) = until("a new master", || led(&two));
    let elapsed = begun.elapsed();
    let Some(known) = known else {
        // It stood still while it read the list.
        return false;
    };
    assert_eq!(known, clients, "it knows them all");
    let stats = server.cli(["INFO", "commandstats"]).text();
    let number = |name: &str| {
        let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:"))?;
        let (_, rest) = line.split_once(&format!("{name}="))?;
        rest.split(',').next()?.parse::<f64>().ok()
    };
    let (calls, micros) = (number("calls").expect("calls"), number("usec").expect("a time"));
    println!("{clients} clients: {elapsed:?}, {calls} calls of {} us", micros / calls);
    // What one call reads is what bounds the time for which the server is blocked.
    assert!(calls >= clients as f64 / 2_000.0, "{calls} calls");
    second == first + 1
}

#[test]
fn a_master_of_many_clients_is_elected_once_and_reads_their_list_page_by_page() {
    for clients in [1, 1_000, 115_000, 1_000_000] {
        // Where other programs have the processors, a master may stand still until its term has ended.
        let is_elected_once = (0..10).any(|_| elects_once_with(clients));
        assert!(is_elected_once, "{clients} clients");
    }
}

#[test]
fn clients_that_come_at_once_are_written_down_a_part_at_a_time() {
    let election = Election::new();
    let one = election.stand("http://one");
    election.until_master(&one);
    let names: Vec<_> = (0..1_700).map(|name| name.to_string()).collect();
    let mut changes: Vec<_> = names.iter().map(|name| joined(name)).collect();
    // The last word about each counts, in whichever part it is.
    changes.extend(names.iter().skip(1).map(|name| left(name)));
    assert_eq!(record(&one, changes), Ok(()));
    let two = election.stand("http://two");
    election.until_other(&two, "http://one");
    drop(one);
    let (_, known) = election.until_master(&two);
    assert_eq!(known, Some(vec![LeaseHolder { resource: "db".into(), client: "0".into() }]));
}
