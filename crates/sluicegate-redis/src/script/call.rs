//! Calls of the scripts: one by one, several in one run, and those that renew places.

use std::time::Duration;

use redis::{Arg, Cmd};
use sluicegate_core::adapter::{Keys, Receipt};

use super::pack::{self, Caller, Operation, Packed, Row};
use super::reply::{Bytes, Malformed};
use super::source::{RENEW, SETTLE, SETTLE_WITH_LOG, SPEND, Script, TAKE, TAKE_WITH_LOG};

/// A script with its arguments: the keys of the rows, and one packed argument.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Call<'a> {
    pub(super) script: &'static Script,
    pub(super) rows: &'a [Row<'a>],
    /// Keys that belong to no debit.
    pub(super) more_keys: Vec<Vec<u8>>,
    pub(super) args: Vec<u8>,
}

impl<'a> Call<'a> {
    /// Charges all rows, or none.
    #[cfg(test)]
    pub(crate) fn take(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Caller>,
    ) -> Self {
        Self::of(Operation::Take, rows, patience, keys, by)
    }

    /// Answers like [`take`](Self::take), without charging anything.
    #[cfg(test)]
    pub(crate) fn peek(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Caller>,
    ) -> Self {
        Self::of(Operation::Peek, rows, patience, keys, by)
    }

    /// Forgets everything spent that is not held, and answers like [`peek`](Self::peek).
    #[cfg(test)]
    pub(crate) fn reset(
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Caller>,
    ) -> Self {
        Self::of(Operation::Reset, rows, patience, keys, by)
    }

    /// An operation on several rows: `Take` charges all or none; `Peek` answers like `Take` without charging; `Reset`
    /// forgets everything spent that is not held, and answers like `Peek`.
    pub(crate) fn of(
        operation: Operation,
        rows: &'a [Row<'a>],
        patience: Option<Duration>,
        keys: Keys,
        by: impl Into<Caller>,
    ) -> Self {
        let by = by.into();
        let (script, args) = match (operation, rows, patience) {
            (Operation::Take, [row], None) if pack::is_plain(row) => {
                (&*SPEND, pack::spend(row, by))
            }
            _ => {
                let script = if rows.iter().any(pack::has_log) { &TAKE_WITH_LOG } else { &TAKE };
                (&**script, pack::take(operation, rows, patience, keys, by))
            }
        };
        Self { script, rows, more_keys: Vec::new(), args }
    }

    /// Changes the charge that wrote `receipt` to `spent`. The script answers a number without a meaning.
    pub(crate) fn settle(
        row: &'a Row<'a>,
        receipt: &Receipt,
        spent: u64,
        by: impl Into<Caller>,
    ) -> Self {
        let args = pack::settle(row, receipt, spent, by.into());
        let script = if pack::has_log(row) { &SETTLE_WITH_LOG } else { &SETTLE };
        // Also where nobody leases: another process may, and the rule about giving back needs what it left there.
        let more_keys = row.lease_key().into_iter().collect();
        Self { script, rows: std::slice::from_ref(row), more_keys, args }
    }

    pub(crate) fn script(&self) -> &'static Script {
        self.script
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.rows.iter().map(|row| row.key).chain(self.more_keys.iter().map(Vec::as_slice))
    }

    /// Whether several of these calls can share one run of the script. The run is given all keys, equal ones side
    /// by side. Its argument is the clock, the same for all, then for each distinct debit the number of calls with
    /// it, and the debit.
    pub(crate) fn can_be_batched(&self) -> bool {
        std::ptr::eq(self.script, &*SPEND)
    }

    /// `ARGV[1]`, the only argument.
    pub(crate) fn args(&self) -> &[u8] {
        &self.args
    }
}

/// `EVALSHA`: the script by its hash.
pub(crate) fn by_hash<'a>(
    script: &Script,
    keys: impl Iterator<Item = &'a [u8]> + Clone,
    args: &[u8],
) -> Cmd {
    eval("EVALSHA", script.sha(), keys, args)
}

/// `EVAL`: the command with the script itself, which the server knows from then on.
pub(crate) fn in_full(script: &Script, by_hash: &Cmd) -> Cmd {
    let mut full = redis::cmd("EVAL");
    // Everything but the name of the command and the hash is the same.
    full.arg(script.source());
    for argument in by_hash.args_iter().skip(2) {
        if let Arg::Simple(bytes) = argument {
            full.arg(bytes);
        }
    }
    full
}

pub(super) fn eval<'a>(
    name: &str,
    script: &str,
    keys: impl Iterator<Item = &'a [u8]> + Clone,
    args: &[u8],
) -> Cmd {
    // The size of the command is known, so it is written without growing.
    let (count, bytes) =
        keys.clone().fold((0, 0), |(count, bytes), key| (count + 1, bytes + key.len()));
    let bytes = name.len() + script.len() + bytes + args.len();
    let mut command = Cmd::with_capacity(count + 4, bytes + 16);
    command.arg(name).arg(script).arg(count);
    keys.for_each(|key| {
        command.arg(key);
    });
    command.arg(args);
    command
}

/// The clock of the call, at the beginning of its argument.
const CLOCK: usize = size_of::<f64>();

/// The number of equal debits, in front of the debit.
const COUNT: usize = size_of::<f64>();

/// The limit's identity, at the end of a row's key.
const LIMIT: usize = 16;

/// A call that can share a run of its script with others.
#[derive(Debug, Clone)]
pub(crate) struct SingleCall {
    script: &'static Script,
    key: Vec<u8>,
    args: Vec<u8>,
}

impl SingleCall {
    /// A call that [can be batched](Call::can_be_batched), which has one row.
    pub(crate) fn of(call: Call<'_>) -> Self {
        let key = call.rows.first().map(|row| row.key.to_vec()).unwrap_or_default();
        Self { script: call.script, key, args: call.args }
    }

    pub(crate) fn script(&self) -> &'static Script {
        self.script
    }

    /// The command that runs the script for this call alone.
    pub(crate) fn command(&self) -> Cmd {
        by_hash(self.script, std::iter::once(&*self.key), &self.args)
    }

    fn clock(&self) -> &[u8] {
        &self.args[..CLOCK]
    }

    fn debit(&self) -> &[u8] {
        &self.args[CLOCK + COUNT..]
    }

    /// Sorts by limit, then by key.
    pub(crate) fn order(&self) -> (&[u8], &[u8]) {
        (&self.key[self.key.len().saturating_sub(LIMIT)..], &self.key)
    }
}

/// One or more calls of one script, [sorted](SingleCall::order): the script reads the row of equal keys once, and is
/// told equal debits once.
#[derive(Debug)]
pub(crate) struct CallBatch(pub(crate) Vec<SingleCall>);

impl CallBatch {
    pub(crate) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", self.0[0].script.sha())
    }

    /// With the script itself, which the server knows from then on.
    pub(crate) fn in_full(&self) -> Cmd {
        self.command("EVAL", self.0[0].script.source())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.0.iter().map(|call| &*call.key)
    }

    /// `ARGV[1]`, the only argument.
    pub(crate) fn args(&self) -> Vec<u8> {
        // All of them have the server's clock.
        let mut args = self.0[0].clock().to_vec();
        for alike in self.0.chunk_by(|one, other| one.debit() == other.debit()) {
            args.extend_from_slice(&(alike.len() as f64).to_le_bytes());
            args.extend_from_slice(alike[0].debit());
        }
        args
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        eval(name, script, self.keys(), &self.args())
    }
}

impl Call<'_> {
    /// Renews the places of the caller in the rows of these `keys`. If it has taken none since its turn, its count in each
    /// row is lowered to the one in `known`. [`missing`] reads the answer.
    pub(crate) fn renew(
        keys: Vec<Vec<u8>>,
        known: impl IntoIterator<Item = u64>,
        by: Caller,
    ) -> Self {
        let mut packed = Packed::new(4 + keys.len());
        packed.now(by.now).numbers([by.holder, by.lease, by.turn]);
        known.into_iter().for_each(|count| {
            packed.number(count);
        });
        Self { script: &RENEW, rows: &[], more_keys: keys, args: packed.0 }
    }
}

/// Whether the places of the caller were missing, for each of the rows of the call.
pub(crate) fn missing(reply: &[u8], rows: usize) -> Result<Vec<bool>, Malformed> {
    let mut bytes = Bytes(reply);
    let missing = (0..rows).map(|_| bytes.flag()).collect::<Result<_, _>>()?;
    bytes.end()?;
    Ok(missing)
}
