//! Rows in PostgreSQL.

mod batch;
mod connections;

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use self::batch::Batch;
pub use self::connections::Connections;
#[cfg(feature = "deadpool")]
pub use self::connections::Prepared;

use crate::engine::{Engine, EngineError, Loaded, Stored, Swapped, Write};

/// An [`Engine`] in PostgreSQL 13 or later: one statement for a decision, or for many that come at the same time.
///
/// Create the table and its function once, by [`migrate`](Self::migrate) or with the text of [`sql`](Self::sql). A user
/// needs `SELECT`, `INSERT`, `UPDATE` and `DELETE` on the table, and `EXECUTE` on the function, to decide.
///
/// ```no_run
/// use sluicegate_swap::Swap;
/// use sluicegate_swap::postgres::Postgres;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let (client, connection) =
///     tokio_postgres::connect("host=localhost user=limiter", tokio_postgres::NoTls).await?;
/// tokio::spawn(connection);
/// let postgres = Postgres::new(std::sync::Arc::new(client));
/// postgres.migrate().await?;
/// let store = Swap::new(postgres);
/// # Ok(())
/// # }
/// ```
///
/// - **Connections** are yours: one client, a pool of `deadpool-postgres` (feature `deadpool`), or anything else that is
///   [`Connections`]. TLS is what your connections use. One client is enough for one process, but is not replaced when it
///   is lost; a pool is.
/// - **PgBouncer** works, also in transaction mode: no statement has a name, and nothing is kept in a session.
/// - **Prepared statements** save the server the planning of each decision. They are an option, `Prepared` (feature
///   `deadpool`), because PgBouncer before 1.21 loses them.
/// - **Rows that have expired** are deleted when others are added: every eighth new row looks at one page of the table.
/// - **The table is unlogged,** unless it is [`logged`](Self::logged).
///
/// Clones share their connections.
#[derive(Debug)]
pub struct Postgres<C> {
    connections: Arc<C>,
    table: String,
    is_logged: bool,
    load: Arc<str>,
    update: Arc<str>,
    swap: Arc<str>,
    batch: Arc<Batch>,
}

impl<C> Clone for Postgres<C> {
    fn clone(&self) -> Self {
        Self {
            connections: Arc::clone(&self.connections),
            table: self.table.clone(),
            is_logged: self.is_logged,
            load: Arc::clone(&self.load),
            update: Arc::clone(&self.update),
            swap: Arc::clone(&self.swap),
            batch: Arc::clone(&self.batch),
        }
    }
}

/// The rows that one statement locks.
const ROWS: usize = 64;

impl<C: Connections> Postgres<C> {
    /// Rows in the table `sluicegate`.
    pub fn new(connections: C) -> Self {
        let (table, nothing) = (String::new(), Arc::from(""));
        let [load, update, swap] = std::array::from_fn(|_| Arc::clone(&nothing));
        let (connections, batch) = (Arc::new(connections), Arc::default());
        let postgres = Self { connections, table, is_logged: false, load, update, swap, batch };
        postgres.table("sluicegate")
    }

    /// Sets the name of the table, after that of its schema and a dot, if it has one. The function has the same name with
    /// `_swap` behind it.
    ///
    /// # Panics
    ///
    /// If a name has something else than letters, digits and underscores.
    #[must_use]
    #[track_caller]
    pub fn table(mut self, name: &str) -> Self {
        let is_plain = |part: &str| {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            !part.is_empty() && part.len() <= 58 && part.bytes().all(is_word)
        };
        assert!(
            name.split('.').count() <= 2 && name.split('.').all(is_plain),
            "`{name}` is no name of a table, such as `sluicegate` or `shop.limits`"
        );
        let quoted: Vec<_> = name.split('.').map(|part| format!("\"{part}\"")).collect();
        self.table = quoted.join(".");
        let (table, function) = (&self.table, self.function());
        self.load = format!(
            "SELECT {MICROS}, r.version, r.content FROM unnest($1) WITH ORDINALITY AS k (key, number) \
             LEFT JOIN {table} r ON r.key = k.key COLLATE \"C\" ORDER BY k.number"
        )
        .into();
        // A row with another version is written as it is, because only that shows it as it is after waiting for its lock.
        let if_expected = |column: &str, value: &str| {
            format!("{column} = CASE WHEN r.version = $5 THEN {value} ELSE r.{column} END")
        };
        let (version, content) = (if_expected("version", "$2"), if_expected("content", "$3"));
        let forget = "clock_timestamp() + $4 * interval '1 microsecond'";
        let forget = if_expected("forget", forget);
        self.update = format!(
            "UPDATE {table} r SET {version}, {content}, {forget} WHERE r.key = $1 \
             RETURNING {MICROS}, r.version, CASE WHEN r.version <> $2 THEN r.content END"
        )
        .into();
        self.swap = format!("SELECT {function}($1, $2, $3, $4, $5, $6)").into();
        self
    }

    /// Makes the table a logged one: its rows survive a crash of the server, and are replicated. An unlogged table is
    /// several times quicker, and is empty after a crash or a failover, so that each limit begins anew.
    ///
    /// [`migrate`](Self::migrate) also changes a table that is there and is not logged. Without this, a logged table stays
    /// a logged one.
    #[must_use]
    pub fn logged(mut self) -> Self {
        self.is_logged = true;
        self
    }

    /// Creates the table and its function, or replaces the function. Any number of processes may do so at the same time.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or the user may not create them.
    pub async fn migrate(&self) -> Result<(), EngineError> {
        let sql = self.sql();
        // One statement, so that it works on every connection. The lock keeps processes that start together apart.
        let statement = format!(
            "DO $migrate$ BEGIN PERFORM pg_advisory_xact_lock(7814532906112057531); {sql} END $migrate$"
        );
        self.connections.query(&statement, &[]).await.map(drop)
    }

    /// The statements that create the table and its function.
    pub fn sql(&self) -> String {
        let unlogged = if self.is_logged { "" } else { "UNLOGGED " };
        let (table, function) = (&self.table, self.function());
        let change = if self.is_logged { include_str!("logged.sql") } else { "" };
        let sql = format!("{}{change}", include_str!("swap.sql"));
        sql.replace("{unlogged}", unlogged)
            .replace("{function}", &function)
            .replace("{table}", table)
    }

    fn function(&self) -> String {
        format!("{}_swap\"", self.table.trim_end_matches('"'))
    }
}

const MICROS: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

impl<C: Connections> Engine for Postgres<C> {
    fn rows_at_once(&self) -> usize {
        ROWS
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
        let rows = self.connections.query(&self.load, &[(&keys, Type::TEXT_ARRAY)]).await?;
        let mut now = None;
        let mut loaded = Vec::with_capacity(rows.len());
        for row in rows {
            let (micros, version): (i64, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
            now = Some(Duration::from_micros(micros.try_into()?));
            loaded.push(match version {
                Some(version) => Some(Stored { version: version as u64, bytes: row.try_get(2)? }),
                None => None,
            });
        }
        Ok(Loaded { rows: loaded, now })
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        match writes {
            [write] => Batch::swap(self, write.clone()).await,
            _ => self.call(writes, false).await.map(swapped),
        }
    }
}

/// The longest time for which a row is kept: the year 294276 is the last that PostgreSQL knows.
const LONGEST: Duration = Duration::from_secs(1_000 * 365 * 24 * 60 * 60);

fn micros(duration: Duration) -> i64 {
    duration.min(LONGEST).as_micros() as i64
}

/// What has become of a row.
enum Answer {
    Written(u64),
    Found(Option<Stored>),
}

/// The answers of a statement, and the time.
type Called = Option<(Vec<Answer>, Duration)>;

impl<C: Connections> Postgres<C> {
    /// Swaps one row that should be there, without the function, which would cost about as much as the swap. `None` if it
    /// is not there.
    async fn update(
        &self,
        write: &Write,
        expected: u64,
    ) -> Result<Option<(Answer, Duration)>, EngineError> {
        let (version, expected) = (write.version as i64, expected as i64);
        let rows = self
            .connections
            .query(
                &self.update,
                &[
                    (&&*write.key, Type::TEXT),
                    (&version, Type::INT8),
                    (&&*write.bytes, Type::BYTEA),
                    (&micros(write.keep), Type::INT8),
                    (&expected, Type::INT8),
                ],
            )
            .await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (now, version): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let now = Duration::from_micros(now.try_into()?);
        let version = version as u64;
        if version == write.version {
            return Ok(Some((Answer::Written(version), now)));
        }
        Ok(Some((Answer::Found(Some(Stored { version, bytes: row.try_get(2)? })), now)))
    }

    /// Swaps, and answers for each row and with the time. `None` if nothing was written because of others: under a stricter
    /// isolation than "read committed", a statement fails where it would have waited for another and seen its row.
    async fn call(&self, writes: &[Write], apart: bool) -> Result<Called, EngineError> {
        match self.call_once(writes, apart).await {
            Ok(called) => Ok(Some(called)),
            Err(error) if is_conflict(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn call_once(
        &self,
        writes: &[Write],
        apart: bool,
    ) -> Result<(Vec<Answer>, Duration), EngineError> {
        if let [write @ Write { expected: Some(expected), .. }] = writes {
            if let Some((answer, now)) = self.update(write, *expected).await? {
                return Ok((vec![answer], now));
            }
        }
        let keys: Vec<&str> = writes.iter().map(|write| &*write.key).collect();
        let expected = writes.iter().map(|write| write.expected.map(|version| version as i64));
        let expected: Vec<Option<i64>> = expected.collect();
        let versions: Vec<i64> = writes.iter().map(|write| write.version as i64).collect();
        let contents: Vec<&[u8]> = writes.iter().map(|write| &*write.bytes).collect();
        let keep: Vec<i64> = writes.iter().map(|write| micros(write.keep)).collect();
        let rows = self
            .connections
            .query(
                &self.swap,
                &[
                    (&keys, Type::TEXT_ARRAY),
                    (&expected, Type::INT8_ARRAY),
                    (&versions, Type::INT8_ARRAY),
                    (&contents, Type::BYTEA_ARRAY),
                    (&keep, Type::INT8_ARRAY),
                    (&apart, Type::BOOL),
                ],
            )
            .await?;
        let malformed = || EngineError::from("the function has answered something else");
        let answer: Vec<Option<&[u8]>> = rows.first().ok_or_else(malformed)?.try_get(0)?;
        let (now, parts) = answer.split_first().ok_or_else(malformed)?;
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
        let now = now.and_then(number).map(Duration::from_micros).ok_or_else(malformed)?;
        if parts.is_empty() {
            let written = writes.iter().map(|write| Answer::Written(write.version));
            return Ok((written.collect(), now));
        }
        let rows = parts.chunks_exact(2).map(|part| match part {
            [Some(version), None] => number(version).map(Answer::Written),
            [Some(version), Some(content)] => number(version)
                .map(|version| Answer::Found(Some(Stored { version, bytes: content.to_vec() }))),
            _ => Some(Answer::Found(None)),
        });
        let rows = rows.collect::<Option<Vec<_>>>().filter(|rows| rows.len() == writes.len());
        Ok((rows.ok_or_else(malformed)?, now))
    }
}

/// Whether the server has undone the statement because of others.
fn is_conflict(error: &EngineError) -> bool {
    let error = error.downcast_ref::<tokio_postgres::Error>();
    let conflicts = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    error.and_then(|error| error.code()).is_some_and(|code| conflicts.contains(code))
}

/// Rows that were swapped together.
fn swapped(called: Called) -> Swapped {
    let Some((rows, now)) = called else { return Swapped::Changed(None) };
    let version = |row: &Answer| match row {
        Answer::Written(version) => Some(*version),
        Answer::Found(_) => None,
    };
    if let Some(versions) = rows.iter().map(version).collect() {
        return Swapped::Written { versions, now: Some(now) };
    }
    let found = rows.into_iter().map(|row| match row {
        Answer::Found(stored) => Some(stored),
        Answer::Written(_) => None,
    });
    // Rows of which nothing is known have to be loaded.
    let rows = found.collect::<Option<_>>();
    Swapped::Changed(rows.map(|rows| Loaded { rows, now: Some(now) }))
}
