//! Several calls in one run of a script.

use redis::Cmd;

use super::call::Call;
use super::command::{by_hash, eval};
use super::source::Script;

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

    pub(crate) fn clock(&self) -> &[u8] {
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
