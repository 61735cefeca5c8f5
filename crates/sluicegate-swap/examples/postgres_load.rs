//! Decisions a second in PostgreSQL, beside a bare `UPDATE .. RETURNING` over the same number of connections, in turns:
//! `cargo run --release --features deadpool --example postgres_load -- "host=127.0.0.1 user=postgres"`.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::{Manager, Pool};
use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store;
use sluicegate_swap::Swap;
use sluicegate_swap::postgres::{Connections, Postgres, Prepared};
use tokio::task::JoinSet;

const TURN: Duration = Duration::from_secs(1);
const ROUNDS: usize = 5;
pub(crate) const CONNECTIONS: usize = 16;
/// Processes that share one hot key: each a store with connections of its own.
pub(crate) const PROCESSES: usize = 4;
const KEYS: usize = 10_000;

/// No request is refused, and each finds and writes the row of its key.
const LIMIT: Limit = Limit::per_day(1).burst(100_000_000);

/// Decides about a request with this key.
pub(crate) type Decide = Arc<dyn Fn(String) -> BoxFuture + Send + Sync>;
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A name, and as many of this kind as there are processes.
pub(crate) type Kind = (&'static str, Vec<Decide>);

pub(crate) fn decide<F: Future<Output = ()> + Send + 'static>(
    decide: impl Fn(String) -> F + Send + Sync + 'static,
) -> Decide {
    Arc::new(move |key| Box::pin(decide(key)))
}

fn bare(pool: Pool) -> Decide {
    decide(move |key| {
        let pool = pool.clone();
        async move {
            let client = pool.get().await.expect("a connection");
            let text = "UPDATE bare SET count = count + 1 WHERE key = $1 RETURNING count";
            let statement = client.prepare_cached(text).await.expect("a statement");
            client.query_one(&statement, &[&key]).await.expect("a row");
        }
    })
}

fn swap<C: Connections + Clone>(engine: Postgres<C>, prefix: &str) -> (Swap<Postgres<C>>, Decide) {
    let store = Swap::builder(engine).prefix(prefix).deadline(Duration::from_secs(10)).build();
    let asked = store.clone();
    let decide = decide(move |key| {
        let charge = Charge::of(LIMIT, KeyBuf::of(&*key), 1);
        let answer = asked.take(&charge);
        async move {
            let outcome = match answer {
                Answer::Now(outcome) => outcome,
                Answer::Later(future) => future.await,
            };
            assert!(outcome.expect("an answer").is_admitted());
        }
    });
    (store, decide)
}

/// Runs all contenders of one kind for a turn, with `in_flight` requests for each. Returns the decisions a second, and the
/// median and the 99th percentile of their times.
async fn turn(contenders: &[Decide], in_flight: usize, keys: &Arc<[String]>) -> [f64; 3] {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for (number, contender) in
        contenders.iter().flat_map(|one| std::iter::repeat_n(one, in_flight)).enumerate()
    {
        let (contender, keys) = (contender.clone(), Arc::clone(keys));
        tasks.spawn(async move {
            let (mut at, mut times) = (number * 7_919, Vec::new());
            while began.elapsed() < TURN {
                at = at.wrapping_mul(1_103_515_245).wrapping_add(12_345) % (1 << 31);
                let asked = Instant::now();
                contender(keys[(at >> 8) % keys.len()].clone()).await;
                times.push(asked.elapsed());
            }
            times
        });
    }
    let mut times: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let took = began.elapsed();
    times.sort_unstable();
    let micros = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e6;
    [times.len() as f64 / took.as_secs_f64(), micros(50), micros(99)]
}

pub(crate) fn pool(config: &str) -> Result<Pool, Box<dyn Error + Send + Sync>> {
    let manager = Manager::new(config.parse()?, tokio_postgres::NoTls);
    Ok(Pool::builder(manager).max_size(CONNECTIONS).build()?)
}

async fn compare(title: &str, kinds: &[(&str, &[Decide])], in_flight: usize, keys: usize) {
    let keys: Arc<[String]> = (0..keys).map(|number| format!("user-{number:06}")).collect();
    // All rows are there and known before the first turn.
    for (_, kind) in kinds {
        for keys in keys.chunks(64) {
            let mut tasks = JoinSet::new();
            for key in keys {
                let (contender, key) = (kind[0].clone(), key.clone());
                tasks.spawn(async move { contender(key).await });
            }
            tasks.join_all().await;
        }
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = Vec::new();
        for (_, kind) in kinds {
            round.push(turn(kind, in_flight, &keys).await);
        }
        rounds.push(round);
    }
    let median = |of: &dyn Fn(&Vec<[f64; 3]>) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(of).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    for (number, (kind, _)) in kinds.iter().enumerate() {
        let [rate, p50, p99] = [0, 1, 2].map(|figure| median(&|round| round[number][figure]));
        let ratio = median(&|round| round[number][0] / round[0][0]);
        println!(
            "{title}, {in_flight} in flight, {kind}: {rate:.0}/s p50 {p50:.0} p99 {p99:.0} µs; ratio {ratio:.2}"
        );
    }
}

/// Compares these kinds too, whose tables are there.
pub(crate) async fn run(
    config: &str,
    rivals: Vec<Kind>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let setup = pool(config)?;
    setup
        .get()
        .await?
        .batch_execute(
            "DROP TABLE IF EXISTS bare, sluicegate; \
             CREATE UNLOGGED TABLE bare (key text PRIMARY KEY, count bigint NOT NULL) WITH (fillfactor = 50); \
             INSERT INTO bare SELECT 'user-' || lpad(n::text, 6, '0'), 0 FROM generate_series(0, 9999) AS n",
        )
        .await?;
    Postgres::new(setup).migrate().await?;
    let mut kinds: Vec<Kind> = ["bare", "unnamed", "prepared"].map(|name| (name, vec![])).into();
    let (mut unnamed, mut prepared) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        kinds[0].1.push(bare(pool(config)?));
        let (store, decide) = swap(Postgres::new(pool(config)?), "unnamed:");
        kinds[1].1.push(decide);
        unnamed.push(store);
        let (store, decide) = swap(Postgres::new(Prepared(pool(config)?)), "prepared:");
        kinds[2].1.push(decide);
        prepared.push(store);
    }
    kinds.extend(rivals);
    let one: Vec<_> = kinds.iter().map(|(name, kind)| (*name, &kind[..1])).collect();
    for in_flight in [1, 16, 64, 256] {
        compare("many keys", &one, in_flight, KEYS).await;
    }
    let all: Vec<_> = kinds.iter().map(|(name, kind)| (*name, &kind[..])).collect();
    for in_flight in [16, 64] {
        compare("one hot key, four processes", &all, in_flight, 1).await;
    }
    unnamed.iter().for_each(|store| println!("unnamed: {:?}", store.counts()));
    prepared.iter().for_each(|store| println!("prepared: {:?}", store.counts()));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let config =
        std::env::args().nth(1).ok_or("name the server: \"host=127.0.0.1 user=postgres\"")?;
    run(&config, Vec::new()).await
}
