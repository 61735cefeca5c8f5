use std::collections::HashMap;

use redis::aio::MultiplexedConnection;
use redis::cmd;

use super::scripts::{Named, ask};
use super::{BURST, Remote, WINDOW};

/// The scripts of limitador's store in Redis for one limit: one reads the counter and, if there is room, one counts.
/// Other clients can come in between.
///
/// Not limitador itself: with that store it needs OpenSSL, which this workspace does without.
#[derive(Debug, Clone)]
pub struct LimitadorScripts {
    connection: MultiplexedConnection,
    read: Named,
    count: Named,
}

const READ: &str = "
local found = {}
for _, key in ipairs(KEYS) do
  table.insert(found, redis.call('get', key))
  table.insert(found, redis.call('pttl', key))
end
return found
";

const COUNT: &str = "
local count = redis.call('incrby', KEYS[1], ARGV[2])
if count == tonumber(ARGV[2]) then
  redis.call('expire', KEYS[1], ARGV[1], 'NX')
  redis.call('sadd', KEYS[2], KEYS[1])
end
return count
";

impl LimitadorScripts {
    /// Sends the server the scripts.
    pub async fn new(connection: MultiplexedConnection) -> Self {
        let read = Named::load(READ, &connection).await;
        let count = Named::load(COUNT, &connection).await;
        Self { connection, read, count }
    }
}

impl Remote for LimitadorScripts {
    async fn decide(&self, key: &str) -> bool {
        let counter = format!("namespace:{{api}},counter:{:?}", HashMap::from([("user_id", key)]));
        let mut read = cmd("EVALSHA");
        read.arg(self.read.sha()).arg(1).arg(&counter);
        let (used, _) = ask::<(Option<u64>, i64)>(&self.connection, &read).await;
        if used.unwrap_or(0) >= BURST {
            return false;
        }
        let mut count = cmd("EVALSHA");
        count
            .arg(self.count.sha())
            .arg(2)
            .arg(&counter)
            .arg("namespace:{api},counters_of_limit:api");
        count.arg(WINDOW).arg(1);
        ask::<u64>(&self.connection, &count).await > 0
    }
}
