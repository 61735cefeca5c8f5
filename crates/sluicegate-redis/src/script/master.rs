//! Elections of a master.

use super::call::Call;
use super::pack::Packed;
use super::reply::{Bytes, Malformed};
use super::source::MASTER;

/// A server that wants to be the master of a name.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The row of the mastership, and that of the clients.
    pub(crate) keys: [Vec<u8>; 2],
    /// Who it is. Not zero.
    pub(crate) number: u64,
    /// How long it is the master after each call, in microseconds.
    pub(crate) lease: u64,
    /// The longest lease of a client, in microseconds.
    pub(crate) longest: u64,
    /// Where its clients find it.
    pub(crate) address: String,
}

/// What a candidate has to say.
#[derive(Debug, Clone)]
pub(crate) enum Say<'a> {
    /// It wants to be the master, or to stay it.
    Campaign,
    /// These clients have come (`true`) and gone.
    Record(&'a [(bool, Vec<u8>)]),
    /// It does not want to be the master any more.
    Resign,
}

impl Call<'_> {
    /// Says that, at `now` in tests. `fence` is the candidate's own if it is the master, otherwise the largest that it has
    /// seen.
    pub(crate) fn candidate(
        candidate: &Candidate,
        now: Option<u64>,
        fence: u64,
        say: &Say<'_>,
    ) -> Self {
        let mut packed = Packed::new(6);
        let what = match say {
            Say::Campaign => 0,
            Say::Record(_) => 1,
            Say::Resign => 2,
        };
        packed.now(now).code(what).numbers([
            candidate.number,
            candidate.lease,
            fence,
            candidate.longest,
        ]);
        match say {
            Say::Campaign => packed.bytes(candidate.address.as_bytes()),
            Say::Record(changes) => {
                for (joins, client) in *changes {
                    packed.code(u8::from(*joins)).number(client.len() as u64).bytes(client);
                }
            }
            Say::Resign => {}
        }
        Self { script: &MASTER, rows: &[], more_keys: candidate.keys.to_vec(), args: packed.0 }
    }
}

/// The result of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Election {
    /// Another is the master, for so many microseconds.
    Other { fence: u64, left: u64, address: String },
    /// The candidate still is the master.
    Stays { fence: u64 },
    /// The candidate is the master from now on. `None` if nobody knows which clients there were.
    Begins { fence: u64, clients: Option<Vec<Vec<u8>>> },
}

impl Election {
    pub(crate) fn parse(reply: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(reply);
        let (what, fence) = (bytes.integer()?, bytes.integer()?);
        if what == 1 {
            bytes.end()?;
            return Ok(Self::Stays { fence });
        }
        if what == 0 {
            let left = bytes.integer()?;
            let address = String::from_utf8_lossy(bytes.0).into_owned();
            return Ok(Self::Other { fence, left, address });
        }
        let is_known = bytes.integer()? == 1;
        let mut clients = Vec::new();
        while bytes.end().is_err() {
            let size = bytes.integer()?;
            clients.push(bytes.text(size)?.to_vec());
        }
        Ok(Self::Begins { fence, clients: is_known.then_some(clients) })
    }
}

/// Whether a record was written: the candidate still was the master.
pub(crate) fn is_written(reply: &[u8]) -> Result<bool, Malformed> {
    let mut bytes = Bytes(reply);
    let is_written = bytes.integer()? == 1;
    bytes.end().map(|()| is_written)
}
