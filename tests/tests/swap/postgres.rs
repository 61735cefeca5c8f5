//! PostgreSQL, with a real server.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use sluicegate_core::adapter::{Answer, Charge, Outcome};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::postgres::{Connections, Postgres, Prepared};
use sluicegate_swap::{Engine, EngineError, Swap, SwapBuilder, Write};
use sluicegate_tests::servers::{self, until};
use sluicegate_tests::{answer, conformance, key};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, Row};

use crate::store::{by_hand, left, open, runtime, settled};

const DAY: Duration = Duration::from_secs(86_400);

/// A server for all tests that do not disturb it.
fn shared() -> &'static servers::Postgres {
    static SERVER: LazyLock<servers::Postgres> = LazyLock::new(servers::Postgres::start);
    &SERVER
}

fn pool(server: &servers::Postgres) -> Pool {
    pool_of(&server.config())
}

fn pool_of(config: &str) -> Pool {
    let config = config.parse().expect("a configuration");
    let manager = Manager::new(config, NoTls);
    Pool::builder(manager).max_size(16).build().expect("a runtime is not needed")
}

/// The engine of the shared server, with its table.
fn engine() -> Postgres<Pool> {
    static ENGINE: LazyLock<Postgres<Pool>> =
        LazyLock::new(|| migrated(Postgres::new(pool(shared()))));
    ENGINE.clone()
}

fn migrated(postgres: Postgres<Pool>) -> Postgres<Pool> {
    runtime().block_on(postgres.migrate()).expect("the user may create tables");
    postgres
}

/// A prefix that no other test has.
fn own_prefix() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("test-{}:", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A patient store, so that a busy machine fails no test.
fn patient(postgres: Postgres<Pool>, prefix: &str) -> SwapBuilder<Postgres<Pool>> {
    let minute = Duration::from_secs(60);
    Swap::builder(postgres).prefix(prefix).deadline(minute)
}

fn sql(server: &servers::Postgres, statement: &str) -> Vec<tokio_postgres::Row> {
    runtime().block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&server.config(), NoTls).await.expect("the server answers");
        tokio::spawn(connection);
        client.query_typed(statement, &[]).await.expect("a statement")
    })
}

async fn take<E: sluicegate_swap::Engine>(store: &Swap<E>, charge: &Charge) -> Option<Outcome> {
    match store.take(charge) {
        Answer::Now(outcome) => outcome.ok(),
        Answer::Later(future) => future.await.ok(),
    }
}

conformance!(
    postgres,
    |clock: &ManualClock| open(by_hand(engine(), clock).prefix(&own_prefix())),
    settled
);

conformance!(
    prepared,
    |clock: &ManualClock| {
        engine();
        open(by_hand(Postgres::new(Prepared(pool(shared()))), clock).prefix(&own_prefix()))
    },
    settled
);

#[test]
fn a_table_has_the_name_that_it_is_given() {
    sql(shared(), "CREATE SCHEMA shop");
    let postgres = migrated(Postgres::new(pool(shared())).table("shop.limits").logged());
    runtime().block_on(postgres.migrate()).expect("a second time changes nothing");
    let store = open(patient(postgres, "a:"));
    let charge = Charge::of(Limit::per_minute(1), key("alice"), 1);
    assert!(answer(store.take(&charge)).expect("an answer").is_admitted());
    let rows = sql(shared(), "SELECT key FROM shop.limits");
    assert_eq!(rows.len(), 1);
    assert!(rows[0].get::<_, String>(0).starts_with("a:{alice}"));
    let persistence = "SELECT relpersistence::text FROM pg_class WHERE relname = 'limits'";
    assert_eq!(sql(shared(), persistence)[0].get::<_, String>(0), "p");
}

/// Decides ten times about one key: one load, and a swap for each decision.
fn ten_decisions<C: Connections>(postgres: Postgres<C>) {
    let minute = Duration::from_secs(60);
    let store = open(Swap::builder(postgres).prefix(&own_prefix()).deadline(minute));
    let charge = Charge::of(Limit::per_minute(100), key("alice"), 1);
    for _ in 0..10 {
        assert!(answer(store.take(&charge)).expect("an answer").is_admitted());
    }
    let counts = store.counts();
    assert_eq!((counts.loads, counts.swaps, counts.conflicts), (1, 10, 0));
}

#[test]
fn each_decision_is_one_statement_without_a_name() {
    let client = runtime().block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&shared().config(), NoTls).await.expect("the server answers");
        tokio::spawn(connection);
        Arc::new(client)
    });
    engine();
    let postgres = Postgres::new(Arc::clone(&client));
    ten_decisions(postgres);
    // PgBouncer in transaction mode would lose them.
    let prepared = "SELECT name FROM pg_prepared_statements";
    let prepared = runtime().block_on(client.query_typed(prepared, &[])).expect("a statement");
    assert!(prepared.is_empty(), "{prepared:?}");
}

/// One to read the row, one to add it and one to change it.
#[test]
fn statements_are_prepared_once() {
    engine();
    let pool = pool(shared());
    let postgres = Postgres::new(Prepared(pool.clone()));
    ten_decisions(postgres);
    let prepared = "SELECT statement FROM pg_prepared_statements ORDER BY statement";
    let prepared = runtime().block_on(async {
        pool.get().await.expect("a connection").query_typed(prepared, &[]).await
    });
    let prepared = prepared.expect("a statement");
    let words = |row: &tokio_postgres::Row| row.get::<_, String>(0)[..6].to_owned();
    let words: Vec<_> = prepared.iter().map(words).collect();
    assert_eq!(words, ["SELECT", "SELECT", "UPDATE"], "{prepared:?}");
}

/// Swaps that come at the same time go together, and none is left behind.
#[test]
fn swaps_that_come_at_the_same_time_are_all_answered() {
    let prefix = own_prefix();
    let stores: Vec<_> = (0..2).map(|_| open(patient(engine(), &prefix))).collect();
    let limit = Limit::fixed_window(1_000, DAY).from_first();
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..64_usize {
            let store = stores[number % 2].clone();
            tasks.spawn(async move {
                for turn in 0..40 {
                    let name = ((number * 7 + turn * 13) % 96).to_string();
                    let charge = Charge::of(limit, key(&name), 1);
                    take(&store, &charge).await.expect("an answer");
                }
            });
        }
        tasks.join_all().await;
    });
    let spent = (0..96).map(|name| 1_000 - left(&stores[0], limit, &name.to_string()));
    assert_eq!(spent.sum::<u64>(), 64 * 40);
}

/// Requests of several processes for one key and one of their own.
#[test]
fn processes_get_exactly_the_limit() {
    let prefix = own_prefix();
    let limit = Limit::fixed_window(500, DAY).from_first();
    let stores: Vec<_> = (0..4).map(|_| open(patient(engine(), &prefix))).collect();
    let admitted = count(&stores, limit, 400);
    assert_eq!(admitted, 500);
    assert_eq!(left(&stores[0], limit, "alice"), 0);
}

/// How many requests are admitted if each store makes this many.
fn count(stores: &[Swap<Postgres<Pool>>], limit: Limit, requests: usize) -> u64 {
    let admitted = runtime().block_on(async {
        let tasks: Vec<_> = stores
            .iter()
            .enumerate()
            .flat_map(|(own, store)| (0..requests).map(move |_| (own, store.clone())))
            .map(|(own, store)| {
                tokio::spawn(async move {
                    let mut charge = Charge::of(limit, key("alice"), 1);
                    let of_own = Limit::fixed_window(1_000_000, DAY).from_first().named("own");
                    charge.add(of_own, key(&own.to_string()), 1).expect("two limits");
                    take(&store, &charge).await.is_some_and(|outcome| outcome.is_admitted())
                })
            })
            .collect();
        let mut admitted = 0;
        for task in tasks {
            admitted += u64::from(task.await.expect("no panic"));
        }
        admitted
    });
    stores.iter().for_each(settled);
    admitted
}

/// A pool of connections that answer nothing for a while, as where a machine is gone.
#[derive(Clone)]
struct Silent(Pool, Arc<AtomicBool>);

impl Connections for Silent {
    async fn query(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, EngineError> {
        if self.1.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.0.query(statement, parameters).await
    }
}

/// Fails a statement that had to wait, and panics where another one is sent with its swaps.
struct Panics(Arc<AtomicU8>);

const WAIT: u8 = 0;
const PANIC: u8 = 1;
const FAIL: u8 = 2;

impl Connections for Panics {
    async fn query(
        &self,
        _: &str,
        _: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, EngineError> {
        let mood = || self.0.load(Ordering::SeqCst);
        assert!(mood() != PANIC, "as users do");
        while mood() == WAIT {
            tokio::task::yield_now().await;
        }
        Err("it is away".into())
    }
}

#[test]
fn connections_that_panic_keep_no_turn() {
    let mood = Arc::new(AtomicU8::new(WAIT));
    let postgres = Postgres::new(Panics(Arc::clone(&mood)));
    let swap = |number: u64| {
        let postgres = postgres.clone();
        let write = Write {
            key: number.to_string().into(),
            expected: None,
            version: number,
            bytes: Vec::new(),
            keep: DAY,
        };
        tokio::spawn(async move { postgres.swap(&[write]).await.is_err() })
    };
    let others = || async {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        for round in 0..4 {
            mood.store(WAIT, Ordering::SeqCst);
            let mut swaps = Vec::new();
            for number in 0..8 {
                swaps.push(swap(8 * round + number));
                // The first ones go alone, and the others wait for them.
                others().await;
            }
            mood.store(PANIC, Ordering::SeqCst);
            others().await;
            assert!(swaps.iter().all(tokio::task::JoinHandle::is_finished), "round {round}");
        }
        mood.store(FAIL, Ordering::SeqCst);
        assert!(swap(100).await.expect("no panic any more"));
    });
}

/// Statements that are never answered give their turns to others.
#[test]
fn connections_that_never_answer_do_not_stop_those_that_do() {
    engine();
    let millis = Duration::from_millis;
    let silent = Arc::new(AtomicBool::new(false));
    let postgres = Postgres::new(Silent(pool(shared()), Arc::clone(&silent)));
    let store = Swap::builder(postgres).prefix(&own_prefix()).deadline(millis(400));
    let store = open(store.breaker(0, millis(1), millis(10)));
    let charges: Vec<_> =
        (0..30).map(|name| Charge::of(Limit::per_minute(100), key(&name.to_string()), 1)).collect();
    // Rows that are known are swapped at once.
    for charge in &charges {
        until("a first decision in time", || answer(store.take(charge)).ok());
    }
    silent.store(true, Ordering::Relaxed);
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for charge in &charges {
            let (store, charge) = (store.clone(), charge.clone());
            tasks.spawn(async move { assert!(take(&store, &charge).await.is_none()) });
            // Some come while others wait.
            tokio::time::sleep(millis(20)).await;
        }
        tasks.join_all().await;
    });
    silent.store(false, Ordering::Relaxed);
    for charge in &charges {
        until("a decision in time", || answer(store.take(charge)).ok());
    }
}

/// A server to which each new connection works only after two more decisions have failed.
fn slow_to_connect(failed: &Arc<AtomicU64>) -> String {
    let config: tokio_postgres::Config = shared().config().parse().expect("a configuration");
    let server = (Ipv4Addr::LOCALHOST, config.get_ports()[0]);
    let listener = runtime().block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let failed = Arc::clone(failed);
    runtime().spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (failed, before) = (Arc::clone(&failed), failed.load(Ordering::Relaxed));
            tokio::spawn(async move {
                while failed.load(Ordering::Relaxed) < before + 2 {
                    tokio::task::yield_now().await;
                }
                let mut server = TcpStream::connect(server).await.expect("the server listens");
                // It ends with an error where the client does not take its leave.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    format!("host=127.0.0.1 port={port} user=postgres dbname=postgres")
}

#[test]
fn a_connection_that_takes_longer_than_a_decision_is_made_all_the_same() {
    engine();
    let failed = Arc::new(AtomicU64::new(0));
    let config = slow_to_connect(&failed);
    let millis = Duration::from_millis;
    let prefix = own_prefix();
    let charge = Charge::of(Limit::per_minute(1_000), key("alice"), 1);
    let decides = |store: &dyn Fn() -> bool| {
        until("a decision in time", || {
            let is_made = store();
            failed.fetch_add(u64::from(!is_made), Ordering::Relaxed);
            is_made.then_some(())
        });
    };
    let plain = Swap::builder(Postgres::new(pool_of(&config))).prefix(&prefix);
    let plain = open(plain.deadline(millis(200)).breaker(0, millis(1), millis(10)));
    decides(&|| answer(plain.take(&charge)).is_ok());
    let prepared = Swap::builder(Postgres::new(Prepared(pool_of(&config)))).prefix(&prefix);
    let prepared = open(prepared.deadline(millis(200)).breaker(0, millis(1), millis(10)));
    decides(&|| answer(prepared.take(&charge)).is_ok());
}

/// As an administrator may set it for a whole database.
#[test]
fn a_stricter_isolation_costs_other_tries_and_no_errors() {
    engine();
    for isolation in ["serializable", r"repeatable\\ read"] {
        let config =
            format!("{} options='-c default_transaction_isolation={isolation}'", shared().config());
        let prefix = own_prefix();
        let stores: Vec<_> =
            (0..4).map(|_| open(patient(Postgres::new(pool_of(&config)), &prefix))).collect();
        let limit = Limit::fixed_window(500, DAY).from_first();
        assert_eq!(count(&stores, limit, 200), 500, "{isolation}");
        let failures = stores.iter().map(|store| store.counts().failures).sum::<u64>();
        assert_eq!(failures, 0, "{isolation}");
    }
}

#[test]
fn a_table_that_is_there_is_logged_from_then_on() {
    let name = "logged_later";
    let persistence = || {
        let table = format!("SELECT relpersistence::text FROM pg_class WHERE relname = '{name}'");
        sql(shared(), &table)[0].get::<_, String>(0)
    };
    let postgres = || Postgres::new(pool(shared())).table(name);
    migrated(postgres());
    assert_eq!(persistence(), "u");
    migrated(postgres().logged());
    assert_eq!(persistence(), "p");
    migrated(postgres());
    assert_eq!(persistence(), "p");
    // The text works by itself, too.
    let text = postgres().logged().sql();
    let run =
        async { pool(shared()).get().await.expect("a connection").batch_execute(&text).await };
    runtime().block_on(run).expect("what is there is changed no more");
}

/// PostgreSQL knows no time after the year 294276.
#[test]
fn times_without_an_end_are_kept_for_long() {
    let store = patient(engine(), &own_prefix()).concurrency_lease(Duration::MAX);
    let store = open(store.background(4_096, Duration::MAX));
    let charge = Charge::of(Limit::concurrent(1), key("alice"), 1);
    assert!(answer(store.take(&charge)).expect("an answer").is_admitted());
    assert!(!answer(store.take(&charge)).expect("an answer").is_admitted());
}

/// What PostgreSQL says of a statement with many swaps is the reason of each of their errors.
#[test]
fn every_error_says_why() {
    let prefix = own_prefix();
    let readers = format!("{} options='-c default_transaction_read_only=on'", shared().config());
    engine();
    let store = patient(Postgres::new(pool_of(&readers)), &prefix);
    let store = open(store.breaker(0, DAY, DAY).background(4_096, Duration::from_millis(1)));
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for name in 0..40 {
            let store = store.clone();
            tasks.spawn(async move {
                let charge = Charge::of(Limit::per_minute(1), key(&name.to_string()), 1);
                let Answer::Later(future) = store.take(&charge) else { panic!("it has to ask") };
                let error = future.await.expect_err("nothing is written");
                let mut source = std::error::Error::source(&error);
                let mut reasons = Vec::new();
                while let Some(reason) = source {
                    reasons.push(reason.to_string());
                    source = reason.source();
                }
                let reason = " in a read-only transaction";
                assert!(reasons.iter().any(|text| text.contains(reason)), "{reasons:?}");
            });
        }
        tasks.join_all().await;
    });
}

#[test]
fn connections_that_are_cut_lose_and_keep_nothing() {
    let server = servers::Postgres::start();
    let postgres = migrated(Postgres::new(pool(&server)));
    let limit = Limit::fixed_window(100_000, DAY).from_first();
    let millis = Duration::from_millis;
    let store = || open(patient(postgres.clone(), "cut:").breaker(0, millis(1), millis(20)));
    let stores = [store(), store()];
    let cut = || {
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                      WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        sql(&server, others);
    };
    std::thread::scope(|scope| {
        let counting = scope.spawn(|| (0..40).map(|_| count(&stores, limit, 50)).sum::<u64>());
        while !counting.is_finished() {
            cut();
        }
        let admitted = counting.join().expect("no panic");
        let counts: Vec<_> = stores.iter().map(Swap::counts).collect();
        eprintln!("{admitted} admitted, {counts:?}");
        assert!(counts.iter().any(|counts| counts.failures > 0));
        assert!(counts.iter().all(|counts| counts.unanswered == 0));
        let charge = Charge::of(limit, key("alice"), 1);
        let left = until("a connection", || {
            let peeked = answer(stores[0].peek(&charge)).ok()?;
            peeked.decision(&charge).remaining()
        });
        assert_eq!(left, 100_000 - admitted);
    });
}

/// Another transaction holds the row for longer than the deadline, so the swap happens after its failure.
#[test]
fn a_decision_that_is_too_late_is_given_back() {
    let prefix = own_prefix();
    let limit = Limit::fixed_window(10, DAY).from_first();
    let charge = Charge::of(limit, key("alice"), 1);
    let store = open(patient(engine(), &prefix).deadline(Duration::from_millis(200)));
    let patient = open(patient(engine(), &prefix));
    until("a first decision in time", || {
        answer(store.take(&charge)).ok().filter(Outcome::is_admitted)
    });
    settled(&store);
    let before = left(&patient, limit, "alice");
    runtime().block_on(async {
        let (mut client, connection) =
            tokio_postgres::connect(&shared().config(), NoTls).await.expect("the server answers");
        tokio::spawn(connection);
        let transaction = client.transaction().await.expect("a transaction");
        let rows = format!("SELECT 1 FROM sluicegate WHERE key LIKE '{prefix}%' FOR UPDATE");
        assert_eq!(transaction.query_typed(&rows, &[]).await.expect("a lock").len(), 1);
        let Answer::Later(future) = store.take(&charge) else { panic!("it has to ask") };
        assert!(future.await.expect_err("the row is locked").is_too_slow());
        transaction.commit().await.expect("the end");
    });
    settled(&store);
    assert_eq!(left(&patient, limit, "alice"), before);
    assert_eq!(store.counts().unanswered, 0);
}

#[test]
fn a_server_that_is_killed_comes_back_with_a_logged_table() {
    let server = servers::Postgres::start();
    let postgres = migrated(Postgres::new(pool(&server)).logged());
    let store = open(Swap::builder(postgres).deadline(Duration::from_secs(2)).breaker(
        5,
        Duration::from_millis(10),
        Duration::from_millis(50),
    ));
    let limit = Limit::fixed_window(1_000_000, DAY).from_first();
    let charge = Charge::of(limit, key("alice"), 1);
    let mut admitted = 0;
    let mut take = || {
        let outcome = answer(store.take(&charge)).ok()?;
        admitted += 1;
        outcome.is_admitted().then_some(())
    };
    until("a first decision in time", &mut take);
    server.kill();
    // A connection's own process may go on for a moment.
    until("the server to be missed", || take().is_none().then_some(()));
    server.restart();
    until("the store to decide again", &mut take);
    settled(&store);
    assert_eq!(left(&store, limit, "alice"), 1_000_000 - admitted);
}

/// An asynchronous replica forgets what it had not received, and nothing else.
#[test]
fn a_replica_takes_the_place_of_a_killed_server() {
    let primary = servers::Postgres::start();
    let postgres = migrated(Postgres::new(pool(&primary)).logged());
    let replica = primary.replicate();
    let both = Postgres::new(pool_of(&primary.config_with(&replica))).logged();
    drop(postgres);
    let millis = Duration::from_millis;
    let store = Swap::builder(both).deadline(Duration::from_secs(5));
    let store = open(store.breaker(5, millis(10), millis(50)));
    let limit = Limit::fixed_window(1_000_000, DAY).from_first();
    let charge = Charge::of(limit, key("alice"), 1);
    let take = || {
        let outcome = answer(store.take(&charge)).ok()?;
        assert!(outcome.is_admitted(), "a failure is not a refusal");
        Some(())
    };
    let received = 20;
    (0..received).for_each(|_| until("a decision in time", take));
    settled(&store);
    let written: String = sql(&primary, "SELECT pg_current_wal_lsn()::text")[0].get(0);
    let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn");
    until("the replica to have it", || sql(&replica, &replayed)[0].get::<_, bool>(0).then_some(()));
    sql(&replica, "ALTER SYSTEM SET primary_conninfo = ''");
    sql(&replica, "SELECT pg_reload_conf()");
    until("the replica to be cut off", || {
        sql(&replica, "SELECT 1 FROM pg_stat_wal_receiver").is_empty().then_some(())
    });
    // These are forgotten.
    (0..30).for_each(|_| take().expect("the primary is there"));
    primary.kill();
    until("the primary to be missed", || take().is_none().then_some(()));
    sql(&replica, "SELECT pg_promote()");
    until("the store to decide again", take);
    (0..9).for_each(|_| until("a decision", take));
    settled(&store);
    assert_eq!(left(&store, limit, "alice"), 1_000_000 - received - 10);
}

#[test]
fn rows_that_have_expired_are_deleted_with_decisions() {
    let server = servers::Postgres::start();
    let postgres = migrated(Postgres::new(pool(&server)));
    let store = open(patient(postgres, "old:"));
    let decide = |names: std::ops::Range<u32>| {
        runtime().block_on(async {
            for name in names {
                // What is written meanwhile does not expire, however long that takes.
                let charge = Charge::of(Limit::per_day(9), key(&name.to_string()), 1);
                take(&store, &charge).await.expect("an answer");
            }
        });
    };
    decide(0..300);
    sql(&server, "UPDATE sluicegate SET forget = forget - interval '1 day'");
    let are_deleted = (0..100).any(|round| {
        decide(1_000 + 50 * round..1_050 + 50 * round);
        sql(&server, "SELECT 1 FROM sluicegate WHERE forget < clock_timestamp()").is_empty()
    });
    assert!(are_deleted, "old rows are left after 5,000 decisions");
}

/// The clocks of two machines do not count: that of the server does.
#[test]
fn the_server_s_clock_decides() {
    let store = open(patient(engine(), &own_prefix()));
    let charge = Charge::of(Limit::fixed_window(1, DAY), key("alice"), 1);
    let outcome = answer(store.take(&charge)).expect("an answer");
    let reset = outcome.decision(&charge).statuses().next().expect("one limit").reset;
    let left = "SELECT (86400 - extract(epoch FROM clock_timestamp())::bigint % 86400)::bigint";
    let left: i64 = sql(shared(), left)[0].get(0);
    let reset = reset.expect("a window ends").as_secs() as i64;
    assert!((left - reset).abs() < 60, "{reset} s, not {left} s");
}
