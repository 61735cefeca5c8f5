//! Heartbeats of the members of a fleet.

use super::call::Call;
use super::pack::Packed;
use super::reply::{Bytes, Malformed};
use super::source::FLEET;

/// The most members of one group. A row of so many has 480 KB, which each heartbeat reads and writes.
const MOST_MEMBERS: u64 = 10_000;

/// What a member publishes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heartbeat {
    /// In tests, the clock to use instead of the server's.
    pub(crate) now: Option<u64>,
    pub(crate) member: u64,
    /// Microseconds.
    pub(crate) round: u64,
    /// How many rounds a member counts after its last heartbeat.
    pub(crate) kept: u64,
    /// What it wants, or `None` if it leaves.
    pub(crate) wants: Option<u64>,
    pub(crate) weight: u32,
}

impl Call<'_> {
    /// Publishes, and asks for the view of the round. [`View::parse`] reads the answer.
    pub(crate) fn beat(row: Vec<u8>, beat: Heartbeat) -> Self {
        let mut packed = Packed::new(7);
        packed.now(beat.now).numbers([beat.member, beat.round, beat.kept, MOST_MEMBERS]);
        match beat.wants {
            Some(wants) => packed.number(wants),
            None => packed.none(),
        };
        packed.number(beat.weight.into());
        Self { script: &FLEET, rows: &[], more_keys: vec![row], args: packed.0 }
    }
}

/// Who counts in a round: the same for every member that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) round: u64,
    /// Microseconds until the next round.
    pub(crate) left: u64,
    /// The number of each member, what it wants, and its weight.
    pub(crate) members: Vec<(u64, u64, u32)>,
}

impl View {
    pub(crate) fn parse(reply: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(reply);
        let (round, left) = (bytes.integer()?, bytes.integer()?);
        let mut members = Vec::new();
        while bytes.end().is_err() {
            let (member, wants, weight) = (bytes.integer()?, bytes.integer()?, bytes.integer()?);
            members.push((member, wants, u32::try_from(weight).unwrap_or(u32::MAX)));
        }
        Ok(Self { round, left, members })
    }
}
