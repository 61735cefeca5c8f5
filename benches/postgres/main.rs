//! Decisions a second in PostgreSQL, beside other crates that count there:
//! `cargo run --release --manifest-path benches/postgres/Cargo.toml -- "host=127.0.0.1 user=postgres"`.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forge_core::rate_limit::RateLimitConfig;
use forge_runtime::StrictRateLimiter;
use rustauth_core::options::{RateLimitConsumeInput, RateLimitRule, RateLimitStore as _};
use rustauth_deadpool_postgres::DeadpoolPostgresRateLimitStore;
use sluicegate::{Limit, Limiter};
use sluicegate_swap::Swap;
use sluicegate_swap::postgres::Postgres;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

#[expect(dead_code, reason = "it is a program of its own")]
#[path = "../../crates/sluicegate-swap/examples/postgres_load.rs"]
mod load;

use self::load::{CONNECTIONS, Decide, PROCESSES, decide, pool};

/// As each crate makes them. Ids of `forge` are those of PostgreSQL 18, for which this server may be too old.
const TABLES: &str = "
    DROP TABLE IF EXISTS forge_rate_limits, rate_limits;
    CREATE UNLOGGED TABLE forge_rate_limits (
        id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
        bucket_key TEXT NOT NULL,
        tokens DOUBLE PRECISION NOT NULL,
        last_refill TIMESTAMPTZ NOT NULL DEFAULT NOW(),
        max_tokens INTEGER NOT NULL,
        refill_rate DOUBLE PRECISION NOT NULL,
        created_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
    );
    CREATE UNIQUE INDEX ON forge_rate_limits(bucket_key);
    CREATE UNLOGGED TABLE rate_limits (key TEXT PRIMARY KEY, count BIGINT NOT NULL, last_request BIGINT NOT NULL);
";

/// No request is refused.
const MOST: u32 = 100_000_000;
const DAY: Duration = Duration::from_secs(86_400);

/// One statement over `sqlx`.
fn forge(options: &PgConnectOptions) -> Decide {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS as u32);
    let limiter = Arc::new(StrictRateLimiter::new(pool.connect_lazy_with(options.clone())));
    let config = Arc::new(RateLimitConfig::new(MOST, DAY));
    decide(move |key| {
        let (limiter, config) = (Arc::clone(&limiter), Arc::clone(&config));
        async move { assert!(limiter.check(&key, &config).await.expect("an answer").allowed) }
    })
}

/// A transaction of three statements over `tokio-postgres`.
fn rustauth(config: &str) -> Result<Decide, Box<dyn Error + Send + Sync>> {
    let store = DeadpoolPostgresRateLimitStore::new(pool(config)?);
    let rule = RateLimitRule::new(time::Duration::DAY, MOST.into());
    Ok(decide(move |key| {
        let (store, rule) = (store.clone(), rule.clone());
        async move {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            let now_ms = now.as_millis() as i64;
            let decision = store.consume(RateLimitConsumeInput { key, rule, now_ms }).await;
            assert!(decision.expect("an answer").permitted);
        }
    }))
}

/// What each admits of a client that asks a tenth more often than its limit allows, for 20 seconds.
async fn asked_too_often(
    config: &str,
    options: &PgConnectOptions,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    const LIMIT: u32 = 50;
    const SECONDS: u32 = 20;
    let strict = StrictRateLimiter::new(PgPoolOptions::new().connect_lazy_with(options.clone()));
    let per_second = RateLimitConfig::new(LIMIT, Duration::from_secs(1));
    let store = DeadpoolPostgresRateLimitStore::new(pool(config)?);
    let rule = RateLimitRule::new(time::Duration::SECOND, LIMIT.into());
    let own = Limiter::new(Limit::per_second(LIMIT.into()));
    let postgres = Postgres::new(pool(config)?);
    postgres.migrate().await?;
    let own = own.store(Swap::builder(postgres).prefix("often:").build());
    let mut admitted = [0; 3];
    let mut turns = tokio::time::interval(Duration::from_secs(1) * 10 / (11 * LIMIT));
    for _ in 0..SECONDS * LIMIT * 11 / 10 {
        turns.tick().await;
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
        let input = RateLimitConsumeInput { key: "often".into(), rule: rule.clone(), now_ms };
        admitted[0] += u32::from(own.take("often").await?.is_admitted());
        admitted[1] += u32::from(strict.check("often", &per_second).await?.allowed);
        admitted[2] += u32::from(store.consume(input).await?.permitted);
    }
    let [own, forge, rustauth] = admitted;
    let allowed = SECONDS * LIMIT;
    println!(
        "of {} requests at 1.1 times a limit that allows {allowed}, after its burst: sluicegate {own}, forge-runtime {forge}, rustauth {rustauth}",
        allowed * 11 / 10
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let config =
        std::env::args().nth(1).ok_or("name the server: \"host=127.0.0.1 user=postgres\"")?;
    pool(&config)?.get().await?.batch_execute(TABLES).await?;
    let mut options = PgConnectOptions::new();
    for pair in config.split_whitespace() {
        options = match pair.split_once('=') {
            Some(("host", host)) => options.host(host),
            Some(("port", port)) => options.port(port.parse()?),
            Some(("user", user)) => options.username(user),
            Some(("dbname", name)) => options.database(name),
            _ => return Err(format!("`{pair}`: expected host, port, user or dbname").into()),
        };
    }
    asked_too_often(&config, &options).await?;
    let forges = (0..PROCESSES).map(|_| forge(&options)).collect();
    let rustauths = (0..PROCESSES).map(|_| rustauth(&config)).collect::<Result<_, _>>()?;
    load::run(&config, vec![("forge-runtime", forges), ("rustauth", rustauths)]).await
}
