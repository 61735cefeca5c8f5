use std::fmt;
use std::time::Duration;

use actix_extensible_rate_limit::backend::redis::RedisBackend;
use actix_extensible_rate_limit::backend::{Backend, SimpleInput};
use redis_0_26::Client;
use redis_0_26::aio::ConnectionManager;

use super::{BURST, Remote, WINDOW};

/// actix-extensible-rate-limit's store in Redis: a fixed window, in a transaction.
#[derive(Clone)]
pub struct ActixExtensible(RedisBackend);

impl ActixExtensible {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached.
    pub async fn connect(url: &str) -> Result<Self, redis_0_26::RedisError> {
        let manager = ConnectionManager::new(Client::open(url)?).await?;
        Ok(Self(RedisBackend::builder(manager).key_prefix(Some("actix:")).build()))
    }
}

impl Remote for ActixExtensible {
    async fn decide(&self, key: &str) -> bool {
        let input = SimpleInput {
            interval: Duration::from_secs(WINDOW),
            max_requests: BURST,
            key: key.to_owned(),
        };
        let (decision, ..) = self.0.request(input).await.expect("the server answers");
        decision.is_allowed()
    }
}

impl fmt::Debug for ActixExtensible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActixExtensible")
    }
}
