use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, cmd};

use super::{BURST, Remote};

/// A script that the server has.
#[derive(Debug, Clone)]
pub(super) struct Named(Arc<str>);

impl Named {
    pub(super) async fn load(source: &str, connection: &MultiplexedConnection) -> Self {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(source);
        Self(ask::<String>(connection, &command).await.into())
    }

    pub(super) fn sha(&self) -> &str {
        &self.0
    }
}

pub(super) async fn ask<T: FromRedisValue>(connection: &MultiplexedConnection, command: &Cmd) -> T {
    command.query_async(&mut connection.clone()).await.expect("the server answers")
}

/// Which clock a script uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// The process's own clock, sent with each call.
    Client,
    /// The server's.
    Server,
}

/// GCRA as it is often written for Redis: the theoretical arrival time, in seconds with a fraction, as text in one
/// key. It answers whether the request is admitted, what is left, and when to come back.
#[derive(Debug, Clone)]
pub struct Gcra {
    connection: MultiplexedConnection,
    script: Named,
    time: Time,
}

const GCRA: &str = "
local now = tonumber(ARGV[4])
local burst, interval, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local arrival = tonumber(redis.call('GET', KEYS[1]) or now)
arrival = math.max(arrival, now) + interval * cost
local spare = now - (arrival - interval * burst)
if spare < 0 then
  return {0, 0, tostring(-spare), tostring(arrival - interval * cost - now)}
end
local reset = arrival - now
if reset > 0 then
  redis.call('SET', KEYS[1], string.format('%.6f', arrival), 'EX', math.ceil(reset))
end
return {cost, math.floor(spare / interval), '-1', tostring(reset)}
";

const SERVER_TIME: &str = "
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
";

impl Gcra {
    /// Sends the server the script.
    pub async fn new(connection: MultiplexedConnection, time: Time) -> Self {
        let source = match time {
            Time::Client => GCRA.to_owned(),
            Time::Server => GCRA.replace("\nlocal now = tonumber(ARGV[4])\n", SERVER_TIME),
        };
        let script = Named::load(&source, &connection).await;
        Self { connection, script, time }
    }
}

impl Remote for Gcra {
    async fn decide(&self, key: &str) -> bool {
        let mut command = cmd("EVALSHA");
        command.arg(self.script.sha()).arg(1).arg(format!("gcra:{key}"));
        // A second each.
        command.arg(BURST).arg(1).arg(1);
        if self.time == Time::Client {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
            command.arg(now.as_secs_f64());
        }
        let (admitted, ..) = ask::<(u64, u64, String, String)>(&self.connection, &command).await;
        admitted > 0
    }
}
