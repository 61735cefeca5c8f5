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
pub(crate) enum ElectionRequest<'a> {
    /// It wants to be the master, or to stay it.
    Campaign,
    /// These clients have come (`true`) and gone.
    Record(&'a [(bool, Vec<u8>)]),
    /// It does not want to be the master any more.
    Resign,
    /// It wants the clients from this cursor on.
    List(&'a [u8]),
}

/// Where a list of clients begins and ends.
pub(crate) const LIST_END: &[u8] = b"0";

/// What a candidate was told last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Term {
    /// Its own fence if it is the master, otherwise the largest that it has seen.
    pub(crate) fence: u64,
    /// The end of the present mastership, by the server's clock; 0 if there was none yet.
    pub(crate) ends: u64,
}

impl Call<'_> {
    /// Says that, at `now` in tests.
    pub(crate) fn candidate(
        candidate: &Candidate,
        now: Option<u64>,
        heard: Term,
        say: &ElectionRequest<'_>,
    ) -> Self {
        let mut packed = Packed::new(7);
        let what = match say {
            ElectionRequest::Campaign => 0,
            ElectionRequest::Record(_) => 1,
            ElectionRequest::Resign => 2,
            ElectionRequest::List(_) => 3,
        };
        packed.now(now).code(what).numbers([
            candidate.number,
            candidate.lease,
            heard.fence,
            candidate.longest,
            heard.ends,
        ]);
        match say {
            ElectionRequest::Campaign => packed.bytes(candidate.address.as_bytes()),
            ElectionRequest::Record(changes) => {
                for (joins, client) in *changes {
                    packed.code(u8::from(*joins)).number(client.len() as u64).bytes(client);
                }
            }
            ElectionRequest::List(cursor) => packed.bytes(cursor),
            ElectionRequest::Resign => {}
        }
        Self { script: &MASTER, rows: &[], more_keys: candidate.keys.to_vec(), args: packed.0 }
    }
}

/// The result of a campaign. `left` is how long the present mastership lasts, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Election {
    /// Another is the master, or was; or the candidate has not heard how the last mastership ends.
    Other { heard: Term, left: u64, address: String },
    /// The candidate still is the master.
    Stays { heard: Term, left: u64 },
    /// The candidate is the master from now on. Its clients are to be listed, if anybody knows them all.
    Begins { heard: Term, left: u64, is_known: bool },
}

impl Election {
    pub(crate) fn parse(reply: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(reply);
        let (what, fence, ends) = (bytes.integer()?, bytes.integer()?, bytes.integer()?);
        let (heard, left) = (Term { fence, ends }, bytes.integer()?);
        if what == 0 {
            let address = String::from_utf8_lossy(bytes.0).into_owned();
            return Ok(Self::Other { heard, left, address });
        }
        if what == 1 {
            bytes.end()?;
            return Ok(Self::Stays { heard, left });
        }
        let is_known = bytes.integer()? == 1;
        bytes.end()?;
        Ok(Self::Begins { heard, left, is_known })
    }
}

/// A part of the list of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// The end of the mastership, by the server's clock, and how long it lasts, in microseconds.
    pub(crate) ends: u64,
    pub(crate) left: u64,
    /// Where the next page begins.
    pub(crate) cursor: Vec<u8>,
    /// A client may be in several pages.
    pub(crate) clients: Vec<Vec<u8>>,
}

impl Page {
    /// `None` if the candidate is not the master.
    pub(crate) fn parse(reply: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut bytes = Bytes(reply);
        if bytes.integer()? == 0 {
            return Ok(None);
        }
        let (ends, left, size) = (bytes.integer()?, bytes.integer()?, bytes.integer()?);
        let cursor = bytes.text(size)?.to_vec();
        let mut clients = Vec::new();
        while bytes.end().is_err() {
            let size = bytes.integer()?;
            clients.push(bytes.text(size)?.to_vec());
        }
        Ok(Some(Self { ends, left, cursor, clients }))
    }
}

/// Whether a record was written: the candidate still was the master.
pub(crate) fn is_written(reply: &[u8]) -> Result<bool, Malformed> {
    let mut bytes = Bytes(reply);
    let is_written = bytes.integer()? == 1;
    bytes.end().map(|()| is_written)
}
