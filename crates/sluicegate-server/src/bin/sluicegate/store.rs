//! Where limits are counted.

use std::error::Error;
use std::time::Duration;

use http::Uri;
use sluicegate_core::Memory;
use sluicegate_core::store::Store;
use sluicegate_redis::{Leased, Redis, RedisBuilder};
use sluicegate_server::ServiceBuilder;
use sluicegate_server::proxy::Proxy;
use tokio::time::timeout;
use tracing::warn;

use crate::per_second::PerSecond;
use crate::shared::{StoreOptions, read};

/// How long the process waits at its end for what is on its way to Redis.
const FLUSH: Duration = Duration::from_secs(2);

/// How long the process waits at its end for the file. Writing a large file to a slow disk takes long. Systemd and Kubernetes
/// have limits of their own, after which they kill the process.
const WRITE: Duration = Duration::from_secs(60);

/// The shortest secret of keys in bytes: it cannot be guessed.
const MIN_SECRET: usize = 16;

/// The servers of an option, and what is said to them.
fn redis(
    options: &StoreOptions,
    (url, is_cluster, sentinels): (&str, bool, &[String]),
) -> Result<RedisBuilder, String> {
    let mut redis = Redis::builder().prefix(&options.redis_prefix).client_name("sluicegate");
    redis = match sentinels {
        _ if is_cluster => redis.cluster(url.split(',')),
        [] => redis.url(url),
        sentinels => {
            let url_of_master = url.parse::<Uri>().unwrap_or_default();
            redis.sentinel(url_of_master.host().unwrap_or_default(), sentinels).url(url)
        }
    };
    // One of the two Redis may have no TLS.
    let has_tls = options.redis_per_second.is_none() || url.starts_with("rediss:");
    if let Some(file) = options.redis_authorities.as_ref().filter(|_| has_tls) {
        redis = redis.certificate_authorities(read("--redis-authorities", file)?);
    }
    let own = options.redis_certificate.as_ref().zip(options.redis_key.as_ref());
    if let Some((certificate, key)) = own.filter(|_| has_tls) {
        let pem = read("--redis-certificate", certificate)?;
        redis = redis.certificate(pem, read("--redis-key", key)?);
    }
    if options.redis_any_host {
        redis = redis.any_host();
    }
    if let Some(secret) = &options.redis_key_secret {
        // A secret that is mounted as a file often ends with a line break, and one that is typed does not.
        let secret = secret.trim_end_matches(['\r', '\n']);
        if secret.len() < MIN_SECRET {
            return Err("--redis-key-secret: expected at least 16 bytes".to_owned());
        }
        redis = redis.digest_keys(secret);
    }
    Ok(redis)
}

/// What can count in any store.
pub(crate) trait WithStore {
    fn store(self, store: impl Store<Future: Send + 'static> + Send + Sync + 'static) -> Self;
}

impl WithStore for ServiceBuilder {
    fn store(self, store: impl Store<Future: Send + 'static> + Send + Sync + 'static) -> Self {
        self.store(store)
    }
}

impl WithStore for Proxy {
    fn store(self, store: impl Store<Future: Send + 'static> + Send + Sync + 'static) -> Self {
        self.store(store)
    }
}

/// The store of the options.
pub(crate) enum Counting {
    Memory(Memory),
    Redis(Redis),
    Leased(Leased),
    PerSecond(PerSecond<Redis>),
}

impl Counting {
    pub(crate) fn new(options: &StoreOptions, deadline: Duration) -> Result<Self, Box<dyn Error>> {
        let Some(url) = &options.redis else {
            if options.keys == 0 {
                return Err("--keys: 0 keys count nothing, expected at least 1".into());
            }
            if u32::try_from(options.keys).is_err() {
                return Err("--keys: expected less than 4294967296, which would take 160 GB".into());
            }
            let mut memory = Memory::builder().capacity(options.keys);
            if let Some(file) = &options.state {
                memory = memory.keep_in(file);
            }
            let memory = memory.try_build().map_err(|error| format!("--state: {error}"))?;
            return Ok(Self::Memory(memory));
        };
        // The servers need not be there yet.
        let built = |option: &str, servers| {
            let redis = redis(options, servers)?.deadline(deadline);
            redis.build().map_err(|error| format!("{option}: {error}"))
        };
        let others = built("--redis", (url, options.redis_cluster, &options.redis_sentinels))?;
        if let Some(url) = &options.redis_per_second {
            let servers =
                (&**url, options.redis_per_second_cluster, &*options.redis_per_second_sentinels);
            let second = built("--redis-per-second", servers)?;
            return Ok(Self::PerSecond(PerSecond { second, others }));
        }
        Ok(match options.redis_lease {
            Some(tokens) => Self::Leased(Leased::new(others, 1..=tokens)),
            None => Self::Redis(others),
        })
    }

    /// What counts here. It shows the state of a store whose type it knows.
    pub(crate) fn under<C: WithStore>(&self, of: C) -> C {
        match self {
            Self::Memory(memory) => of.store(memory.clone()),
            Self::Redis(redis) => of.store(redis.clone()),
            Self::Leased(leased) => of.store(leased.clone()),
            Self::PerSecond(stores) => of.store(stores.clone()),
        }
    }

    /// Gives back what was leased, and waits for what is on its way to Redis or to the file.
    pub(crate) async fn flush(&self) {
        let is_late = match self {
            Self::Memory(memory) => {
                // Not only when the last clone is dropped: connections that were cut off may still have some.
                let written = memory.clone();
                let written = tokio::task::spawn_blocking(move || written.flush());
                if timeout(WRITE, written).await.is_err() {
                    warn!(
                        "the last counts are not in the file of --state: the disk does not answer"
                    );
                    // Dropping the last clone would wait for the disk.
                    std::mem::forget(memory.clone());
                }
                // Otherwise, the store has logged a failure.
                return;
            }
            Self::Redis(redis) => timeout(FLUSH, redis.flush()).await.is_err(),
            Self::Leased(leased) => timeout(FLUSH, leased.flush()).await.is_err(),
            Self::PerSecond(PerSecond { second, others }) => {
                let both = async { tokio::join!(second.flush(), others.flush()) };
                timeout(FLUSH, both).await.is_err()
            }
        };
        if is_late {
            warn!("Redis has not taken everything that was given back");
        }
    }
}
