//! Renews the places of a process in limits of concurrency.

use super::call::Call;
use super::caller::Caller;
use super::pack::Packed;
use super::reply::{Bytes, Malformed};
use super::source::RENEW;

impl Call<'_> {
    /// Renews the places of the caller in the rows of these `keys`. If it has taken none since its turn, its count in each
    /// row is lowered to the one in `known`. [`lost`] reads the answer.
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

/// In how many rows the places of the caller were missing.
pub(crate) fn lost(reply: &[u8]) -> Result<u64, Malformed> {
    let mut bytes = Bytes(reply);
    let lost = bytes.integer()?;
    bytes.end()?;
    Ok(lost)
}
