//! What runs inside of Redis, and how it is asked and understood.
//!
//! The scripts repeat [`decide`](sluicegate_core::adapter::decide) number by number; the tests in this folder hold
//! them to it.

mod asker;
pub(crate) mod lease;
mod pack;
pub(crate) mod renew;
mod reply;

use std::sync::LazyLock;
use std::time::Duration;

use sluicegate_core::adapter::{Debit, Keys, Receipt};

pub(crate) use self::asker::Asker;
use self::pack::Op;
pub(crate) use self::reply::Reply;

/// A script, and the name by which a server that has seen it knows it.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    sha: String,
}

impl Script {
    fn new(source: &'static str) -> Self {
        Self { source, sha: sha1_smol::Sha1::from(source).digest().to_string() }
    }

    /// What is sent to a server that does not know it.
    pub(crate) fn source(&self) -> &'static str {
        self.source
    }

    /// Its SHA-1, in hexadecimal digits.
    pub(crate) fn sha(&self) -> &str {
        &self.sha
    }
}

/// A script of several files. What stands in `rows.lua` is at hand to all that follows, and a function
/// that finds it there, not in its own frame, is made in half the time: all are made at every call.
macro_rules! joined {
    ($($file:literal),*) => {
        LazyLock::new(|| {
            Script::new(concat!(
                include_str!("rows.lua"),
                "return (function()\n",
                $(include_str!($file),)*
                "end)()\n",
            ))
        })
    };
}

static SPEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("spend.lua")));
/// Of limits without a log: there is a third less to be made.
static TAKE: LazyLock<Script> = joined!("shapes.lua", "limits.lua", "take.lua");
static TAKE_WITH_LOG: LazyLock<Script> = joined!("log.lua", "shapes.lua", "limits.lua", "take.lua");
static SETTLE: LazyLock<Script> = joined!("shapes.lua", "settle.lua");
static SETTLE_WITH_LOG: LazyLock<Script> = joined!("log.lua", "shapes.lua", "settle.lua");

/// What is owed to one limit, and where its row stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// The Redis key.
    pub(crate) key: &'a [u8],
    pub(crate) debit: &'a Debit,
}

/// A script with what it is called with: the rows' keys, and one packed argument.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    script: &'static Script,
    rows: &'a [Row<'a>],
    /// Of rows of which it is not asked what they owe.
    more_keys: Vec<Vec<u8>>,
    args: Vec<u8>,
}

impl<'a> Call<'a> {
    /// Charges all rows, or none.
    pub(crate) fn take(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Asker>,
    ) -> Self {
        let by = by.into();
        match (rows, patience) {
            ([row], None) if pack::is_plain(row) => {
                Self { script: &SPEND, rows, more_keys: Vec::new(), args: pack::spend(row, by) }
            }
            _ => Self::decide(Op::Take, rows, patience, keys, by),
        }
    }

    fn decide(
        op: Op,
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: Asker,
    ) -> Self {
        let script = if rows.iter().any(pack::has_log) { &TAKE_WITH_LOG } else { &TAKE };
        Self { script, rows, more_keys: Vec::new(), args: pack::take(op, rows, patience, keys, by) }
    }

    /// What [`take`](Self::take) would answer, without charging anything.
    pub(crate) fn peek(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Asker>,
    ) -> Self {
        Self::decide(Op::Peek, rows, patience, keys, by.into())
    }

    /// Forgets what was spent and is not held, and answers as [`peek`](Self::peek).
    pub(crate) fn reset(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Asker>,
    ) -> Self {
        Self::decide(Op::Reset, rows, patience, keys, by.into())
    }

    /// Makes the charge that `receipt` stands for into one of `spent`. What is answered is a number that
    /// means nothing.
    pub(crate) fn settle(
        row: &'a Row<'a>,
        receipt: &Receipt,
        spent: u64,
        by: impl Into<Asker>,
    ) -> Self {
        let args = pack::settle(row, receipt, spent, by.into());
        let script = if pack::has_log(row) { &SETTLE_WITH_LOG } else { &SETTLE };
        let more_keys = lease::key_beside(row).into_iter().collect();
        Self { script, rows: std::slice::from_ref(row), more_keys, args }
    }

    pub(crate) fn script(&self) -> &'static Script {
        self.script
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.rows.iter().map(|row| row.key).chain(self.more_keys.iter().map(Vec::as_slice))
    }

    /// Whether the script takes several calls in one: their keys, those that are equal side by side, and
    /// after the clock that is the same for all, how many owe the same and what, again and again.
    pub(crate) fn is_one_of_many(&self) -> bool {
        std::ptr::eq(self.script, &*SPEND)
    }

    /// `ARGV[1]`; there is no other.
    pub(crate) fn args(&self) -> &[u8] {
        &self.args
    }
}

#[cfg(test)]
mod tests;
